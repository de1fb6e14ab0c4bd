"""Settings of `kontrast serve` beside its pages, with tables within a table, and keys that differ by cluster."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from cli.commands.run.serve import serve
from cli.followed_outputs import where_outputs_are
from cli.main import main
from cli.running import ExitCode
from cli.settings.config import SECTIONS, ConfigError, read_flags, read_settings, serve_config, watch_configs
from cli.settings.keys import keys_of
from dashboards.probe.config import KafkaLoginConfig

FILE = """
[watch]
to = "journal:/changes"
[clusters.orders]
zookeeper = "zk1:2181"
kafka_listener = "CLIENTS"
kafka_username = "orders"
[clusters.pay]
zookeeper = "zk2:2181"
[serve]
from = "journal:/outputs"
[serve.alertmanager]
urls = ["http://a:9093"]
resend_interval_seconds = 7
external_labels = { site = "lab" }
[serve.probe]
brokers = true
kafka_listener = "INTERNAL"
kafka_username = "everybody"
kafka_password_variable = "PATH"
"""


def read(tmp_path, text=FILE, flags=None, **environment):
    file = tmp_path / "kontrast.toml"
    file.write_text(text)
    given = {section: read_flags(section, flags or {}) for section in SECTIONS if section.startswith("serve")}
    return serve_config(read_settings(file, environment), given)


def test_tables_within_a_table_are_read(tmp_path):
    config = read(tmp_path)
    assert [str(source) for source in config.sources] == ["journal:/outputs"]
    assert (config.alertmanager.urls, config.alertmanager.resend_interval_seconds) == (("http://a:9093",), 7)
    assert config.alertmanager.external_labels == {"site": "lab"}
    assert config.probe.brokers


def test_nothing_is_switched_on_by_itself(tmp_path):
    config = read(tmp_path, '[serve]\nfrom = "journal:/outputs"\n')
    assert (config.alertmanager.urls, config.probe.brokers) == ((), False)


def test_a_flag_wins_over_the_environment_which_wins_over_the_file(tmp_path):
    environment = {
        "KONTRAST_SERVE__ALERTMANAGER__URLS": "http://b:9093,http://c:9093",
        "KONTRAST_SERVE__ALERTMANAGER__EXTERNAL_LABELS": "rack=1",
        "KONTRAST_SERVE__PROBE__BROKERS": "false",
    }
    config = read(tmp_path, **environment)
    assert config.alertmanager.urls == ("http://b:9093", "http://c:9093")
    assert config.alertmanager.external_labels == {"site": "lab", "rack": "1"}
    assert not config.probe.brokers
    flags = {"alertmanager_urls": "http://d:9093", "probe_brokers": True}
    config = read(tmp_path, flags=flags, **environment)
    assert (config.alertmanager.urls, config.probe.brokers) == (("http://d:9093",), True)


def test_a_cluster_has_its_own_way_to_its_brokers(tmp_path):
    config = read(tmp_path, KONTRAST_CLUSTERS__PAY__KAFKA_TLS="true").probe
    logins = {name: (config.login_of(name).kafka_listener, config.login_of(name).kafka_username,
                     config.login_of(name).kafka_tls) for name in ("orders", "pay", "other")}  # fmt: skip
    assert logins == {
        "orders": ("CLIENTS", "orders", False),
        "pay": ("INTERNAL", "everybody", True),
        "other": ("INTERNAL", "everybody", False),
    }


def test_the_keys_for_brokers_are_nothing_to_the_watcher(tmp_path):
    read(tmp_path)
    configs = watch_configs(read_settings(tmp_path / "kontrast.toml", {}), (), {})
    assert [config.cluster for config in configs] == ["orders", "pay"]
    assert all(name.startswith("kafka_") for name in keys_of(KafkaLoginConfig))


@pytest.mark.parametrize(
    ("text", "environment", "said"),
    [
        ("[serve.alertmanger]\n", {}, "Did you mean alertmanager"),
        ("[serve.alertmanager]\nurl = 1\n", {}, "[serve.alertmanager]: unknown key 'url'. Did you mean urls"),
        ("[serve]\nprobe = 3\n", {}, "[serve.probe] must be a table"),
        ("[serve.probe]\nbrokers = 1\n", {}, "true or false"),
        ("", {"KONTRAST_SERVE__PROBE__BROKER": "1"}, "KONTRAST_SERVE__PROBE__BROKERS"),
        ("[probe]\n", {}, "unknown table or key 'probe'"),
        ("[clusters.a]\nkafka_user = 'x'\n", {}, "kafka_username"),
        ("[serve.alertmanager]\nurls = ['am']\n", {}, "serve.alertmanager: 'am' is no URL"),
        ("[clusters.a]\nzookeeper = 'zk:1'\nkafka_username = 'x'\n", {}, "cluster a: kafka_username is given"),
    ],
)
def test_a_mistake_is_one_sentence_that_names_its_place(tmp_path, text, environment, said):
    with pytest.raises(ConfigError) as refused:
        read(tmp_path, text + ("" if "[serve]" in text else '[serve]\nfrom = "journal:/x"\n'), **environment)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("by", ["file", "environment", "flags"])
def test_the_outputs_of_several_jobs_are_a_list(tmp_path, by):
    wanted = ["journal:/one", "kafka://a:9092,b:9092/other"]
    text = f"[serve]\nfrom = {json.dumps(wanted)}\n" if by == "file" else ""
    environment = {"KONTRAST_SERVE__FROM": ", ".join(wanted)} if by == "environment" else {}
    arguments = [f"--from={each}" for each in wanted] if by == "flags" else []
    file = tmp_path / "kontrast.toml"
    file.write_text(text)
    flags = read_flags("serve", serve.make_context("serve", arguments).params)
    config = serve_config(read_settings(file, environment), {"serve": flags})
    assert [str(source) for source in config.sources] == wanted


def test_check_asks_each_of_several_outputs(tmp_path):
    result = CliRunner().invoke(
        main, ["serve", "--check", f"--from=journal:{tmp_path}/a", f"--from=journal:{tmp_path}/b"]
    )
    assert result.exit_code == ExitCode.UNAVAILABLE
    assert all(f"wrong  outputs journal:{tmp_path}/{each}: missing" in result.output for each in ("a", "b"))


def test_a_look_at_rows_names_one_of_several_outputs():
    settings = read_settings(None, {"KONTRAST_SERVE__FROM": "journal:/a,journal:/b"})
    with pytest.raises(ConfigError, match=r"^which outputs\? KONTRAST_SERVE__FROM has 2\. "):
        where_outputs_are(settings, {})
    assert str(where_outputs_are(settings, read_flags("serve", {"source": "journal:/b"})).address) == "journal:/b"
