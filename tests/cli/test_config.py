"""The TOML file, the environment and the flags, down to the configurations of the parts."""

import dataclasses
from pathlib import Path

import pytest

from cli.settings.config import (
    SECTIONS,
    ConfigError,
    Settings,
    build,
    read_flags,
    read_settings,
    stream_config,
    watch_configs,
)
from cli.settings.keys import keys_of
from controller.rules.releases import profile_of
from streaming.config import StreamConfig
from transport.address import JournalAddress, KafkaAddress

TWO_CLUSTERS = """
[watch]
to = "journal:/var/lib/kontrast/changes"
coalesce_ms = 7

[clusters.orders]
zookeeper = "zk-orders:2181/kafka"

[clusters.pay-eu]
zookeeper = "zk-pay:2181"
to = "kafka://monitor:9092/changes"
coalesce_ms = 9

[stream]
from = "journal:/var/lib/kontrast/changes"
to = "journal:/var/lib/kontrast/outputs"
checkpoint = "/var/lib/kontrast/checkpoint"

[serve]
from = "journal:/var/lib/kontrast/outputs"
listen = "0.0.0.0:9000"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "kontrast.toml"
    path.write_text(TWO_CLUSTERS)
    return path


def settings_of(tmp_path: Path, text: str = "", **environment: str) -> Settings:
    path = tmp_path / "kontrast.toml"
    path.write_text(text)
    return read_settings(path, environment)


def refusal(tmp_path: Path, text: str = "", **environment: str) -> str:
    with pytest.raises(ConfigError) as refused:
        settings_of(tmp_path, text, **environment)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_one_file_holds_several_clusters_and_the_other_commands(file):
    settings = read_settings(file, {})
    orders, pay = watch_configs(settings, (), {})
    assert (orders.cluster, orders.zookeeper, orders.coalesce_ms) == ("orders", "zk-orders:2181/kafka", 7)
    assert orders.to == JournalAddress(Path("/var/lib/kontrast/changes"))
    assert (pay.cluster, pay.zookeeper, pay.coalesce_ms) == ("pay-eu", "zk-pay:2181", 9)
    assert pay.to == KafkaAddress("monitor:9092", "changes")
    stream = build(StreamConfig, "stream", settings.sections["stream"])
    assert stream.source == JournalAddress(Path("/var/lib/kontrast/changes"))
    assert stream.checkpoint == "/var/lib/kontrast/checkpoint"


def test_chosen_clusters_are_watched_once_each_and_no_other(file):
    configs = watch_configs(read_settings(file, {}), ("pay-eu", "pay-eu"), {})
    assert [config.cluster for config in configs] == ["pay-eu"]


def test_a_flag_wins_over_the_environment_then_the_file_then_the_default(tmp_path):
    text = '[watch]\nzookeeper = "zk:2181"\nto = "journal:/x"\n'
    flags = {"to": "journal:/x"}

    def coalesce_ms(text: str, environment: dict[str, str], **flags: str) -> int:
        settings = settings_of(tmp_path, text, **environment)
        (config,) = watch_configs(settings, ("a",), read_flags("watch", flags))
        return config.coalesce_ms

    variable = {"KONTRAST_WATCH__COALESCE_MS": "12"}
    default = coalesce_ms(text, {}, **flags)
    assert default not in (11, 12, 13)
    assert coalesce_ms(text + "coalesce_ms = 11", {}, **flags) == 11
    assert coalesce_ms(text + "coalesce_ms = 11", variable, **flags) == 12
    assert coalesce_ms(text + "coalesce_ms = 11", variable, coalesce_ms="13", **flags) == 13
    assert coalesce_ms(text, variable, **flags) == 12


def test_a_clusters_table_wins_over_the_defaults_and_its_variable_over_its_table(file):
    settings = read_settings(file, {"KONTRAST_WATCH__COALESCE_MS": "1", "KONTRAST_CLUSTERS__PAY_EU__COALESCE_MS": "2"})
    assert [config.coalesce_ms for config in watch_configs(settings, (), {})] == [1, 2]


def test_the_environment_alone_can_name_everything():
    settings = read_settings(
        None,
        {
            "KONTRAST_WATCH__TO": "journal:/changes",
            "KONTRAST_CLUSTERS__EAST__ZOOKEEPER": "zk-east:2181",
            "KONTRAST_CLUSTERS__WEST__ZOOKEEPER": "zk-west:2181",
        },
    )
    assert [(c.cluster, c.zookeeper) for c in watch_configs(settings, (), {})] == [
        ("east", "zk-east:2181"),
        ("west", "zk-west:2181"),
    ]


def test_watch_cluster_names_the_one_cluster_of_a_small_setup(tmp_path):
    settings = settings_of(
        tmp_path, '[watch]\ncluster = "prod"\nzookeeper = "zk:2181"\nto = "journal:/x"', KONTRAST_WATCH__CLUSTER="stage"
    )
    assert [config.cluster for config in watch_configs(settings, (), {})] == ["stage"]


def test_a_variable_that_could_mean_two_clusters_is_refused(tmp_path):
    text = '[clusters.a-b]\nzookeeper = "x:1"\n[clusters."a.b"]\nzookeeper = "y:1"\n'
    sentence = refusal(tmp_path, text, KONTRAST_CLUSTERS__A_B__TO="journal:/x")
    assert "KONTRAST_CLUSTERS__A_B__TO" in sentence
    assert "a-b, a.b" in sentence


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('[stream]\nchekpoint = "x"', ["kontrast.toml", "[stream]", "'chekpoint'", "Did you mean checkpoint?"]),
        ("[watch]\ncoalesce = 1", ["[watch]", "'coalesce'", "coalesce_ms"]),
        ('[clusters.a]\ncluster = "b"', ["[clusters.a]", "'cluster'"]),
        ('[clusters.a]\nzookeper = "x"', ["[clusters.a]", "'zookeper'", "zookeeper"]),
        ("[serv]\nx = 1", ["'serv'", "Did you mean serve?"]),
        ("frobnicate = 1", ["'frobnicate'", "watch, stream, serve, kafka, clusters"]),
        ('[stream]\nsource = "journal:/x"', ["[stream]", "'source'"]),
    ],
)
def test_an_unknown_key_in_the_file_is_refused_with_its_place_and_what_is_near(tmp_path, text, named):
    sentence = refusal(tmp_path, text)
    for part in named:
        assert part in sentence


@pytest.mark.parametrize(
    ("variable", "named"),
    [
        ("KONTRAST_STREAM__CHEKPOINT", "KONTRAST_STREAM__CHECKPOINT"),
        ("KONTRAST_STREEM__CHECKPOINT", "KONTRAST_STREAM__CHECKPOINT"),
        ("KONTRAST_stream__checkpoint", "KONTRAST_stream__checkpoint"),
        ("KONTRAST_CLUSTERS__ORDERS__ZOOKEPER", "ZOOKEEPER"),
        ("KONTRAST_CLUSTERS__ORDERS__CLUSTER", "CLUSTER"),
        ("KONTRAST_CLUSTERS__ORDERS", "KONTRAST_CLUSTERS__ORDERS"),
    ],
)
def test_an_unknown_variable_is_refused_by_name(tmp_path, variable, named):
    sentence = refusal(tmp_path, "", **{variable: "x"})
    assert variable in sentence
    assert named in sentence


def test_variables_that_are_no_settings_are_left_alone(tmp_path):
    environment = {"KONTRAST_CACHE": "/c", "KONTRAST_CONFIG": "/k", "KONTRAST_PORT_9642_TCP": "tcp://x", "PATH__X": "y"}
    assert settings_of(tmp_path, "", **environment) == settings_of(tmp_path)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('[watch]\ncoalesce_ms = "fast"', ["[watch]: coalesce_ms", "a number", "'fast'"]),
        ("[watch]\nmulti_read_paths = true", ["a whole number", "True"]),
        ("[watch]\nmulti_read_paths = 1.5", ["a whole number", "1.5"]),
        ("[watch]\njournal_retain_bytes = 'all'", ["journal_retain_bytes", "a whole number or 'none'", "'all'"]),
        ("[watch]\njournal_fsync = 'often'", ["journal_fsync", "one of always, interval, never", "'often'"]),
        ("[watch]\nzookeeper = 2181", ["[watch]: zookeeper", "a text", "2181"]),
        ('[watch]\nzookeeper = ""', ["zookeeper", "empty"]),
        ("[watch]\nheartbeat_seconds = nan", ["heartbeat_seconds", "finite"]),
        ('[watch]\nto = "kafka:/x"', ["[watch]: to", "'kafka:/x'", "journal:DIRECTORY"]),
        ("[stream]\nfrom = 7", ["[stream]: from", "journal:DIRECTORY or kafka://HOST:PORT/TOPIC", "7"]),
        ("watch = 1", ["[watch]", "must be a table"]),
        ("clusters = 1", ["[clusters]", "must be a table"]),
        ("[clusters]\na = 1", ["[clusters.a]", "must be a table"]),
        ("[topics]\na = 1", ["[topics]", '"a"', 'team = "NAME"']),
        ("topics = 1", ["[topics]", "must be a table"]),
        ("[stream]\nbroker_config = 7", ["[stream]: broker_config: must be a table, not 7"]),
        ("[watch", ["not a TOML file"]),
        ("a = " + "[" * 2_000, ["not a TOML file"]),
    ],
)
def test_an_unusable_value_is_refused_with_its_place_and_what_was_expected(tmp_path, text, named):
    sentence = refusal(tmp_path, text)
    for part in [str(tmp_path / "kontrast.toml"), *named]:
        assert part in sentence


def test_none_switches_a_bound_off_in_the_file_and_in_the_environment(tmp_path):
    text = '[clusters.a]\nzookeeper = "zk:2181"\nto = "journal:/x"\n'
    in_file = settings_of(tmp_path, text + 'journal_retain_bytes = "none"')
    in_environment = settings_of(tmp_path, text, KONTRAST_WATCH__JOURNAL_RETAIN_BYTES="none")
    for settings in (in_file, in_environment):
        assert watch_configs(settings, (), {})[0].journal_retain_bytes is None


def test_a_value_that_the_part_itself_refuses_names_the_cluster(tmp_path):
    settings = settings_of(tmp_path, '[clusters.a]\nzookeeper = "zk:2181"\nto = "journal:/x"\nheartbeat_seconds = -1.0')
    with pytest.raises(ConfigError, match=r"cluster a: .*heartbeat"):
        watch_configs(settings, (), {})


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"absent\.toml: cannot read"):
        read_settings(tmp_path / "absent.toml", {})
    with pytest.raises(ConfigError, match="cannot read"):
        read_settings(tmp_path, {})
    (tmp_path / "latin.toml").write_bytes(b'x = "\xe9"')
    with pytest.raises(ConfigError, match=r"latin\.toml: not a TOML file"):
        read_settings(tmp_path / "latin.toml", {})


def test_a_missing_setting_is_named_in_each_of_its_spellings():
    with pytest.raises(ConfigError) as refused:
        build(StreamConfig, "stream", read_flags("stream", {"source": "journal:/a", "sink": "journal:/b"}))
    for spelling in ("--checkpoint", "KONTRAST_STREAM__CHECKPOINT", "[stream]"):
        assert spelling in str(refused.value)


def test_an_unknown_cluster_is_refused_with_what_is_near(file):
    with pytest.raises(ConfigError, match=r"'order'.*Did you mean orders\?"):
        watch_configs(read_settings(file, {}), ("order",), {})


def test_two_clusters_never_share_a_zookeeper_by_mistake(file):
    flags = read_flags("watch", {"zookeeper": "zk:2181"})
    with pytest.raises(ConfigError, match="orders and pay-eu have the same zookeeper zk:2181"):
        watch_configs(read_settings(file, {}), (), flags)


def test_two_clusters_agree_about_the_journal_that_they_share(tmp_path):
    text = """
        [watch]
        to = "journal:/x"
        [clusters.a]
        zookeeper = "zk-a:2181"
        [clusters.b]
        zookeeper = "zk-b:2181"
        journal_fsync = "always"
        """
    with pytest.raises(ConfigError, match="clusters a and b write the same journal:/x with a different journal_fsync"):
        watch_configs(settings_of(tmp_path, text), (), {})
    for agreed in ('journal_fsync = "always"\nto = "journal:/y"', ""):
        changed = settings_of(tmp_path, text.replace('journal_fsync = "always"', agreed))
        assert len(watch_configs(changed, (), {})) == 2


def test_clusters_that_answer_prometheus_at_one_address_must_agree_on_who_may_ask(tmp_path):
    (tmp_path / "password").write_text("secret")
    text = f"""
        [watch]
        metrics_listen = "127.0.0.1:9643"
        to = "journal:/x"
        [clusters.a]
        zookeeper = "zk-a:2181"
        [clusters.b]
        zookeeper = "zk-b:2181"
        metrics_username = "prometheus"
        metrics_password_file = "{tmp_path / "password"}"
        """
    with pytest.raises(ConfigError, match=r"clusters a and b have the same metrics_listen 127.0.0.1:9643 with diff"):
        watch_configs(settings_of(tmp_path, text), (), {})
    apart = text.replace('zookeeper = "zk-b:2181"', 'zookeeper = "zk-b:2181"\nmetrics_listen = "127.0.0.1:9644"')
    first, second = watch_configs(settings_of(tmp_path, apart), (), {})
    assert (first.listening.username, second.listening.username) == (None, "prometheus")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ('metrics_listen = "nowhere"', "metrics_listen is 'nowhere'"),
        ('metrics_username = "prometheus"', "metrics_username is given and metrics_listen is not"),
        ('metrics_listen = "h:1"\nmetrics_tls_key_file = "k"', "metrics_tls_certificate_file is not"),
        ('metrics_listen = "h:1"\nmetrics_password = "secret"', "unknown key 'metrics_password'"),
    ],
)
def test_what_cannot_be_of_the_metrics_address_is_named_by_its_key(tmp_path, settings, sentence):
    text = f'[clusters.a]\nzookeeper = "zk:2181"\nto = "journal:/x"\n{settings}'
    with pytest.raises(ConfigError, match=sentence):
        watch_configs(settings_of(tmp_path, text), (), {})


def test_a_password_is_no_setting_and_no_flag(tmp_path):
    for section in SECTIONS:
        assert not [name for name in keys_of(SECTIONS[section]) if name.endswith("password")]
    with pytest.raises(ConfigError, match="unknown key 'password'"):
        settings_of(tmp_path, '[serve]\npassword = "secret"')


def test_no_cluster_at_all_is_one_sentence_with_the_way_out():
    with pytest.raises(ConfigError, match=r"--cluster NAME --zookeeper HOST:PORT --to ADDRESS"):
        watch_configs(read_settings(None, {}), (), {})


BROKERS = """
[stream]
from = "journal:/changes"
to = "journal:/outputs"
checkpoint = "/c"
kafka_version = "3.6"
[stream.broker_config]
"min.insync.replicas" = 2
"delete.topic.enable" = false
[clusters.orders]
zookeeper = "zk:2181"
to = "journal:/changes"
kafka_version = "2.8"
[clusters.orders.broker_config]
"unclean.leader.election.enable" = true
"min.insync.replicas" = "3"
[clusters.pay]
kafka_version = "none"
"""


def test_a_clusters_broker_settings_win_name_by_name_over_the_defaults(tmp_path):
    config = stream_config(settings_of(tmp_path, BROKERS), {})
    orders, profile, *_ = config.brokers_of("orders").read()
    assert orders == {"unclean.leader.election.enable": True, "min.insync.replicas": 3, "delete.topic.enable": False}
    assert profile == profile_of((2, 8))
    pay, inferred, *_ = config.brokers_of("pay").read()
    assert (pay, inferred) == ({"min.insync.replicas": 2, "delete.topic.enable": False}, None)
    other, newer, *_ = config.brokers_of("not in the file").read()
    assert (other, newer) == (pay, profile_of((3, 6)))


def test_flags_about_brokers_win_in_all_clusters(tmp_path):
    flags = {"broker_config": "min.insync.replicas=1,leader.imbalance.per.broker.percentage=20", "kafka_version": "3.0"}
    config = stream_config(settings_of(tmp_path, BROKERS), read_flags("stream", flags))
    orders, profile, *_ = config.brokers_of("orders").read()
    said = {"min.insync.replicas": 1, "leader.imbalance.per.broker.percentage": 20, "delete.topic.enable": False}
    assert orders == {**said, "unclean.leader.election.enable": True}
    assert config.brokers_of("not in the file").read()[:2] == (said, profile)
    assert profile == profile_of((3, 0))


def test_variables_about_brokers_win_over_the_same_table_name_by_name(tmp_path):
    config = stream_config(
        settings_of(
            tmp_path,
            BROKERS,
            KONTRAST_STREAM__BROKER_CONFIG="min.insync.replicas=4",
            KONTRAST_CLUSTERS__ORDERS__BROKER_CONFIG="min.insync.replicas=5, auto.leader.rebalance.enable=false",
            KONTRAST_CLUSTERS__ORDERS__KAFKA_VERSION="2.4",
        ),
        {},
    )
    orders, profile, *_ = config.brokers_of("orders").read()
    assert (orders["min.insync.replicas"], orders["auto.leader.rebalance.enable"]) == (5, False)
    assert (orders["unclean.leader.election.enable"], profile) == (True, profile_of((2, 4)))
    pay, _, *_ = config.brokers_of("pay").read()
    assert pay == {"min.insync.replicas": 4, "delete.topic.enable": False}


def test_what_is_said_of_brokers_is_none_of_the_watchers_business(tmp_path):
    (orders,) = watch_configs(settings_of(tmp_path, BROKERS), ("orders",), {})
    assert orders.zookeeper == "zk:2181"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('"min.insync.replica" = 2', ["'min.insync.replica' is no broker setting", "min.insync.replicas"]),
        ('"min.insync.replicas" = "two"', ["min.insync.replicas=two"]),
        ('"min.insync.replicas" = 1.5', ["min.insync.replicas must be", "1.5"]),
        ("min.insync.replicas = 2", ["'min' is a table", "in quotes"]),
    ],
)
@pytest.mark.parametrize("table", ["clusters.a", "stream"])
def test_a_broker_setting_that_cannot_be_used_is_refused_with_its_place(tmp_path, table, text, named):
    sentence = refusal(tmp_path, f"[{table}.broker_config]\n{text}")
    for part in [f"[{table}]: broker_config: ", *named]:
        assert part in sentence


@pytest.mark.parametrize(
    ("variable", "text", "named"),
    [
        ("KONTRAST_CLUSTERS__A__KAFKA_VERSION", "4.0", "0.10 to 3.9"),
        ("KONTRAST_STREAM__KAFKA_VERSION", "three", "'three' is no Kafka release"),
        ("KONTRAST_STREAM__BROKER_CONFIG", "min.insync.replicas", "must be KEY=VALUE, not 'min.insync.replicas'"),
        ("KONTRAST_STREAM__BROKER_CONFIG", "", "must be KEY=VALUE"),
        ("KONTRAST_CLUSTERS__A__COALESCE_MS", "soon", "'soon'"),
        ("KONTRAST_CLUSTERS__A__BROKER_CONFIG", "min.insync.replicas=1,min.insync.replicas=2", "given twice"),
    ],
)
def test_what_a_variable_says_is_refused_by_its_name(tmp_path, variable, text, named):
    sentence = refusal(tmp_path, "", **{variable: text})
    assert sentence.startswith(f"{variable}: ")
    assert named in sentence


def test_every_field_with_a_default_can_be_left_out():
    config = build(
        StreamConfig, "stream", read_flags("stream", {"source": "journal:/a", "sink": "journal:/b", "checkpoint": "/c"})
    )
    for field in dataclasses.fields(StreamConfig):
        if field.default is not dataclasses.MISSING:
            assert getattr(config, field.name) == field.default
