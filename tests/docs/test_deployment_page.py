"""Prometheus's example and the table of topics on the page on deployment."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from streaming.sinks.sink import output_topics
from tests.programs import program
from transport.address import KafkaAddress
from transport.topics import PARTITIONS, stream_topics

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "deploy.md"


def test_promtool_reads_the_scrape_configuration(tmp_path):
    (shown,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    config = tmp_path / "prometheus.yml"
    config.write_text(shown)
    command = [program("promtool"), "check", "config", "--syntax-only", str(config)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_the_table_of_topics_has_what_both_commands_create():
    watch, stream = (
        stream_topics(KafkaAddress("kafka:9092", "CHANGES")),
        output_topics(KafkaAddress("kafka:9092", "OUTPUTS")),
    )
    created = {topic: "watch" for topic in watch} | {topic: "stream" for topic in stream}
    rows = re.findall(
        r"^\| `([^|]+)` \| `kontrast (\w+)` \| (\d) \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert {
        (name, command, int(partitions), settings)
        for names, command, partitions, settings in rows
        for name in names.split("`, `")
    } == {
        (topic.name, command, PARTITIONS, ", ".join(f"`{name}={value}`" for name, value in topic.settings.items()))
        for topic, command in created.items()
    }
