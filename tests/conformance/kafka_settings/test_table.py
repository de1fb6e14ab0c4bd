"""Nobody has edited the table of settings, because only a night's test reads the jars again."""

from tests.conformance.kafka_settings.definitions import CHECKSUM, checksum


def test_the_table_is_as_its_program_wrote_it():
    assert checksum() == CHECKSUM.read_text().strip(), "run `python -m tests.conformance.kafka_settings.definitions`"
