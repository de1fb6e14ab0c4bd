"""`kontrast topics` against a real broker, with topics that are missing, created, wrong, fixed, or beyond repair."""

from __future__ import annotations

import json
from contextlib import closing

import pytest
from click.testing import CliRunner, Result
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewTopic

from cli.main import main
from controller.contract.outputs import OUTPUTS
from transport.address import KafkaAddress
from transport.topics import request_topic


@pytest.fixture
def stream(shared_broker, own_name) -> KafkaAddress:
    return KafkaAddress(shared_broker, own_name)


@pytest.fixture
def config(stream, tmp_path):
    file = tmp_path / "kontrast.toml"
    file.write_text(f'[watch]\nto = "{stream}"\n[stream]\nfrom = "{stream}"\nto = "{stream}-out"\n')
    return file


def topics(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["topics", *map(str, arguments)])


def states(config, *arguments: str) -> dict[str, str]:
    lines = topics("--config", config, "--json", *arguments).stdout.splitlines()
    return {row["topic"]: row["state"] for row in map(json.loads, lines)}


def test_missing_topics_are_named_made_and_mended(config, stream):
    names = {stream.topic, request_topic(stream), *(f"{stream.topic}-out.{output}" for output in (*OUTPUTS, "job"))}
    assert topics("--config", config).exit_code == 1
    assert states(config) == dict.fromkeys(names, "missing")
    assert topics("--config", config, "--apply").exit_code == 0
    assert states(config) == dict.fromkeys(names, "ok")

    with closing(KafkaAdminClient(bootstrap_servers=stream.bootstrap_servers)) as admin:
        wrong = {"cleanup.policy": "compact", "retention.ms": "1000"}
        admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, stream.topic, wrong)])
    shown = topics("--config", config)
    assert shown.exit_code == 1
    assert "all messages but the newest of each key would be lost" in " ".join(shown.stdout.split())
    assert states(config, "--apply") == dict.fromkeys(names, "ok")
    with closing(KafkaAdminClient(bootstrap_servers=stream.bootstrap_servers)) as admin:
        described = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, stream.topic)])
    settings = described["topic"][stream.topic]
    assert (settings["cleanup.policy"]["value"], settings["retention.ms"]["value"]) == ("delete", "1000")


def test_a_retention_that_is_asked_for_is_compared_and_set_for_changes_alone(config, stream):
    assert topics("--config", config, "--days", 2, "--apply").exit_code == 0
    shown = " ".join(topics("--config", config, "--days", 7).stdout.split())
    assert f"topic {stream.topic} has retention.ms=172800000 in place of 604800000" in shown
    assert "--add-config cleanup.policy=delete,retention.ms=604800000" in shown
    assert [name for name, state in states(config, "--days", "7").items() if state != "ok"] == [stream.topic]
    assert set(states(config, "--days", "7", "--apply").values()) == {"ok"}
    assert set(states(config).values()) == {"ok"}


def test_a_compacted_topic_has_small_segments_so_that_a_start_reads_little(config, stream):
    assert topics("--config", config, "--apply").exit_code == 0
    gauges = f"{stream.topic}-out.gauges"
    with closing(KafkaAdminClient(bootstrap_servers=stream.bootstrap_servers)) as admin:
        usual = {"cleanup.policy": "compact", "segment.bytes": str(1 << 30)}
        admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, gauges, usual)])
    shown = " ".join(topics("--config", config).stdout.split())
    assert f"topic {gauges} has segment.bytes=1073741824, so a start reads many rows that were replaced" in shown
    assert [name for name, state in states(config).items() if state != "ok"] == [gauges]
    assert set(states(config, "--apply").values()) == {"ok"}


def test_a_topic_with_too_many_partitions_is_left_to_a_person(config, stream):
    with closing(KafkaAdminClient(bootstrap_servers=stream.bootstrap_servers)) as admin:
        admin.create_topics([NewTopic(f"{stream.topic}-out.alerts", 3, 1)])
    applied = topics("--config", config, "--apply")
    assert applied.exit_code == 1
    assert f"--delete --topic {stream.topic}-out.alerts" in " ".join(applied.stdout.split())


def test_a_configuration_without_kafka_and_brokers_that_are_away_are_sentences(tmp_path):
    file = tmp_path / "kontrast.toml"
    file.write_text('[stream]\nto = "journal:/x"\n')
    assert (topics("--config", file).exit_code, topics("--config", file).stdout) == (2, "")
    file.write_text('[stream]\nto = "kafka://127.0.0.1:1/x"\n')
    away = topics("--config", file)
    assert away.exit_code == 3
    assert "kontrast: Kafka at 127.0.0.1:1 does not answer: no connection is accepted" in away.stderr
