"""`docs/reference-config.toml` and the help pages, which match the dataclasses. REWRITE=1 rewrites the file."""

import dataclasses
import json
import re
import textwrap
from enum import Enum
from pathlib import Path

import msgspec
import pytest

from cli.running import ExitCode
from cli.settings.config import SECTIONS, build, read_settings, serve_config, stream_config, watch_configs
from cli.settings.keys import NONE, Key, keys_of
from cli.settings.options import HELP
from controller.rules.settings import DEFAULT_BEFORE, BrokerSettings
from tests.kept_texts import assert_as_before

DOCUMENTATION = Path(__file__).parents[2] / "docs" / "reference" / "configuration.md"
COMMANDS = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"
REFERENCE = Path(__file__).parents[2] / "docs" / "reference-config.toml"

HEADER = """\
# Every setting of Kontrast with its default. A copy of this file is a configuration that works once the values of the
# keys marked "required" are yours. "none" leaves a key unset. Unknown keys are refused by name. What overrides what:
# docs/reference/configuration.md.
"""

TABLES = {
    "kafka": "Every command: the Kafka of stream and outputs, where `to` or `from` is kafka://.",
    "watch": "`kontrast watch`: what all clusters share. A [clusters.NAME] table may have each key but `cluster`.",
    "stream": "`kontrast stream`: the Spark job.",
    "serve": "`kontrast serve`: the exporter.",
    "serve.alertmanager": "`kontrast serve`: alerts sent straight to Alertmanager, if urls has some.",
    "serve.probe": "`kontrast serve`: the brokers' view. A [clusters.NAME] table may have each key that begins kafka_.",
}

CLUSTERS = """\

# One table a cluster that `kontrast watch` watches; NAME is how every output names it.
[clusters.orders]
zookeeper = "zk1:2181,zk2:2181,zk3:2181/kafka"
# For `kontrast stream`: the brokers' release, like 2.8. Inferred from the znodes if unset.
kafka_version = "none"
# For `kontrast stream`: the brokers on which the controller should be. Unset: any.
preferred_controllers = []
# For `kontrast stream`: what a clean stop takes from clients pages after this time, without a maintenance window.
clean_stop_pages_after_seconds = 60.0

# For `kontrast stream`: what the brokers' files set and no znode shows, by Kafka's names; else its release's defaults.
[clusters.orders.broker_config]
"""

TOPICS = """
# The teams and ranks of topics, consumer groups and transactional ids, by patterns of their names. None by default.
[topics]
# "payments.*" = { team = "payments", contact = "#payments-oncall", rank = 1 }
"""

# Said by [clusters.orders], so only a comment in [watch].
ELSEWHERE = {("watch", "cluster"), ("watch", "zookeeper")}

# Values for the keys that have no default.
EXAMPLES = {
    ("watch", "cluster"): "orders",
    ("watch", "zookeeper"): "zk1:2181",
    ("watch", "to"): "journal:/var/lib/kontrast/changes",
    ("stream", "from"): "journal:/var/lib/kontrast/changes",
    ("stream", "to"): "journal:/var/lib/kontrast/outputs",
    ("stream", "checkpoint"): "/var/lib/kontrast/checkpoint",
    ("serve", "from"): "journal:/var/lib/kontrast/outputs",
}


def reference() -> str:
    parts = [HEADER]
    for section, config_type in SECTIONS.items():
        parts.append(f"\n# {TABLES[section]}\n[{section}]\n")
        parts += [entry(section, key) for key in keys_of(config_type).values()]
        if section == "watch":
            parts.append(CLUSTERS)
            parts += [broker_default(name, value) for name, value in msgspec.to_builtins(BrokerSettings()).items()]
    return "".join([*parts, TOPICS])


def entry(section: str, key: Key) -> str:
    value = EXAMPLES[section, key.name] if key.required else key.default
    comment = HELP[section][key.name] + (" Required." if key.required else "")
    line = f"{key.name} = {literal(value)}"
    if (section, key.name) in ELSEWHERE:
        line = f"# {line}"
    return textwrap.fill(comment, 118, initial_indent="# ", subsequent_indent="# ") + f"\n{line}\n"


def broker_default(name: str, value: object) -> str:
    before = DEFAULT_BEFORE.get(name)
    history = f"  # before {'.'.join(map(str, before[0]))}: {literal(before[1])}" if before else ""
    return f"# {literal(name)} = {literal(value)}{history}\n"


def literal(value: object) -> str:
    if value is None:
        return literal(NONE)
    if isinstance(value, Enum):
        return literal(value.value)
    if isinstance(value, dict):
        return f"{{{', '.join(f'{literal(name)} = {literal(part)}' for name, part in value.items())}}}"
    if isinstance(value, (tuple, list, frozenset)):
        return f"[{', '.join(map(literal, value))}]"
    return json.dumps(value if isinstance(value, (bool, int, float)) else str(value))


@pytest.mark.parametrize("section", SECTIONS)
def test_every_key_is_explained_and_nothing_else_is(section):
    assert set(HELP[section]) == set(keys_of(SECTIONS[section]))
    assert all(text.endswith(".") for text in HELP[section].values())


def test_the_reference_lists_every_key_with_its_default():
    assert_as_before(reference(), REFERENCE)


def test_the_reference_is_read_back_as_the_defaults():
    settings = read_settings(REFERENCE, {})
    (watch,) = watch_configs(settings, (), {})
    stream = build(SECTIONS["stream"], "stream", settings.sections["stream"])
    serve = build(SECTIONS["serve"], "serve", settings.sections["serve"])
    for config in (watch, stream, serve, serve_config(settings, {}).alertmanager):
        needed = {f.name: getattr(config, f.name) for f in dataclasses.fields(config) if keys_required(config, f.name)}
        assert config == type(config)(**needed)
    assert stream_config(settings, {}).brokers_of("orders").read()[:2] == ({}, None)


def test_the_file_that_the_documentation_shows_is_a_configuration(tmp_path):
    (shown,) = re.findall(r"```toml\n(.*?)```", DOCUMENTATION.read_text(), re.DOTALL)
    file = tmp_path / "kontrast.toml"
    file.write_text(shown)
    settings = read_settings(file, {})
    assert [config.cluster for config in watch_configs(settings, (), {})] == ["orders", "payments"]
    serve = serve_config(settings, {})
    assert (len(serve.alertmanager.urls), serve.probe.brokers) == (2, True)
    orders, profile, *_ = stream_config(settings, {}).brokers_of("orders").read()
    assert orders == {"min.insync.replicas": 2, "unclean.leader.election.enable": True}
    assert profile is not None


def test_the_documentation_names_every_exit_code():
    for code in ExitCode:
        assert f"\n| {code.value} |" in COMMANDS.read_text()


def keys_required(config: object, field: str) -> bool:
    return any(key.required for key in keys_of(type(config)).values() if key.field == field)
