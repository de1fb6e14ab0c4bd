"""The configuration of each part, from one TOML file and the environment.

The file has `[watch]`, `[clusters.NAME]`, `[stream]`, `[serve]` and `[topics]`. Defaults < TOML < environment < flags.
The keys are the fields of the parts' dataclasses (`cli.settings.keys`), not a list here.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from cli.settings.disagreements import refuse_disagreements
from cli.settings.errors import ConfigError as ConfigError
from cli.settings.keys import Key, keys_of
from dashboards.alerting.config import AlertmanagerConfig
from dashboards.errors import ServeError
from dashboards.exporter.config import ServeConfig
from dashboards.probe.config import KafkaLoginConfig, ProbeConfig
from ingest.config import IngestConfig, ZooKeeperConfig
from ingest.errors import IngestError
from questions.clients.teams import Teams, read_teams
from streaming.config import BrokersConfig, StreamConfig
from streaming.errors import StreamError
from transport.address import Address, KafkaAddress
from transport.kafka_login import KafkaLogin
from transport.toml_file import TomlError, read_toml
from wording.sentences import did_you_mean, near

Config = TypeVar("Config")
_Value = TypeVar("_Value")

# A dot in a section's name stands for one step into a table.
SECTIONS: Final[Mapping[str, type]] = {
    "watch": IngestConfig,
    "stream": StreamConfig,
    "serve": ServeConfig,
    "serve.alertmanager": AlertmanagerConfig,
    "serve.probe": ProbeConfig,
    "kafka": KafkaLogin,
}

_PREFIX: Final = "KONTRAST_"
_NESTING: Final = "__"
_TOPICS: Final = "topics"  # its keys are patterns, so it has no dataclass
_MOST_BYTES: Final = 16 * 1024**2


@dataclass(frozen=True, slots=True)
class Setting:
    """A value of its key's type, and the place that gave it."""

    value: object
    place: str

    def over(self, earlier: Setting | None) -> Setting:
        """Override an earlier setting, a table key by key."""
        if earlier is None or not isinstance(earlier.value, dict) or not isinstance(self.value, dict):
            return self
        return Setting({**earlier.value, **self.value}, self.place)


Layer = Mapping[str, Setting]


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the file and the environment, one layer per section and cluster."""

    sections: Mapping[str, Layer]
    clusters: Mapping[str, Layer]
    teams: Teams = field(default_factory=Teams)
    file: Path | None = None


def read_settings(path: Path | None, environment: Mapping[str, str]) -> Settings:
    """Return the settings of a TOML file, if one is given, and of the environment, which overrides the file by key."""
    sections: dict[str, dict[str, Setting]] = {name: {} for name in SECTIONS}
    clusters: dict[str, dict[str, Setting]] = {}
    teams = Teams()
    for name, table in ({} if path is None else _load(path)).items():
        if name == "clusters":
            for cluster, cluster_table in _table(table, f"{path}: [clusters]").items():
                place = f"{path}: [clusters.{cluster}]"
                clusters[cluster] = _read_table(_cluster_keys(), _table(cluster_table, place), place)
        elif name == _TOPICS:
            teams = _value(read_teams, _table(table, f"{path}: [{name}]"), f"{path}: [{name}]")
        elif name in SECTIONS:
            sections.update(_read_section(name, _table(table, f"{path}: [{name}]"), path))
        else:
            raise ConfigError(
                _unknown(f"{path}: unknown table or key {name!r}", name, [*_tables_of(""), "clusters", _TOPICS])
            )
    for variable in sorted(environment):
        # Ignore names with single underscores. Kubernetes sets KONTRAST_PORT for a service "kontrast".
        if variable.startswith(_PREFIX) and _NESTING in variable:
            _read_variable(variable, environment[variable], sections, clusters)
    return Settings(sections, clusters, teams, path)


def read_flags(section: str, values: Mapping[str, Any]) -> Layer:
    """Return the settings of a command line. `values` has the value of each option, None for an absent flag."""
    given = {}
    for key in keys_of(SECTIONS[section]).values():
        value = values.get(option_name(section, key))
        if value is not None:
            flag = flag_name(section, key)
            given[key.name] = Setting(value if key.is_switch else _value(key.from_text, value, flag), flag)
    return given


def build(config_type: type[Config], section: str, *layers: Layer, subject: str = "") -> Config:
    """Return the configuration of the layers, later ones over earlier ones. Raise ConfigError.

    Keys that this configuration lacks are ignored, because they belong to another one.
    """
    keys = keys_of(config_type)
    settings: dict[str, Setting] = {}
    for layer in layers:
        for name in keys.keys() & layer.keys():
            settings[name] = layer[name].over(settings.get(name))
    for key in keys.values():
        if key.required and key.name not in settings:
            raise ConfigError(
                f"{subject or section}: {key.name!r} is not set. Give {key.flag}, {variable_name(section, key)}, "
                f"or {key.name} in the [{section}] table of the --config file"
            )
    try:
        return config_type(**{keys[name].field: setting.value for name, setting in settings.items()})
    except (ValueError, IngestError, StreamError, ServeError) as error:
        raise ConfigError(f"{subject or section}: {error}") from error


def watch_configs(settings: Settings, chosen: Sequence[str], flags: Layer) -> list[IngestConfig]:
    """Return the clusters to watch: the chosen ones, or else the one of [watch], or else all configured ones."""
    defaults = dict(settings.sections["watch"])
    default_cluster = defaults.pop("cluster", None)
    names = list(dict.fromkeys(chosen or ([str(default_cluster.value)] if default_cluster else settings.clusters)))
    if not names:
        raise ConfigError(
            "no cluster to watch. Give --cluster NAME --zookeeper HOST:PORT --to ADDRESS, "
            "or a [clusters.NAME] table in the --config file"
        )
    configs = []
    for name in names:
        if settings.clusters and name not in settings.clusters and "zookeeper" not in flags:
            raise ConfigError(_unknown(f"no cluster {name!r} is configured", name, settings.clusters))
        identity = {"cluster": Setting(name, "--cluster")}
        layers = (defaults, settings.clusters.get(name, {}), flags, identity)
        config = build(IngestConfig, "watch", *layers, subject=f"cluster {name}")
        configs.append(dataclasses.replace(config, to=reached(settings, config.to)))
    refuse_disagreements(configs)
    return configs


def snapshot_config(
    settings: Settings, cluster: str | None, flags: Layer, brokers_flags: Layer
) -> tuple[ZooKeeperConfig, BrokersConfig]:
    """Return the settings of ZooKeeper and brokers for the named cluster, or for the only configured one."""
    name = cluster or (next(iter(settings.clusters)) if len(settings.clusters) == 1 else None)
    if cluster is not None and cluster not in settings.clusters and "zookeeper" not in flags:
        raise ConfigError(_unknown(f"no cluster {cluster!r} is configured", cluster, settings.clusters))
    if name is None and "zookeeper" not in flags and len(settings.clusters) > 1:
        raise ConfigError(f"which cluster? Give --cluster with one of {', '.join(sorted(settings.clusters))}")
    own = settings.clusters.get(name, {}) if name is not None else {}
    subject = "watch" if name is None else f"cluster {name}"
    zookeeper = build(ZooKeeperConfig, "watch", settings.sections["watch"], own, flags, subject=subject)
    return zookeeper, brokers_config(settings, own, brokers_flags, subject)


def brokers_config(settings: Settings, own: Layer, flags: Layer, subject: str = "") -> BrokersConfig:
    """Return the settings of a cluster's brokers, with its `own` layer, and the ranks of topics."""
    brokers = build(BrokersConfig, "stream", settings.sections["stream"], own, flags, subject=subject)
    return dataclasses.replace(brokers, topic_ranks=settings.teams.ranks)


def serve_config(settings: Settings, flags: Mapping[str, Layer]) -> ServeConfig:
    """Return the exporter's configuration with its optional parts. The flags are by section."""

    def layers(section: str) -> tuple[Layer, Layer]:
        return settings.sections[section], flags.get(section, {})

    config = build(ServeConfig, "serve", *layers("serve"))
    config = dataclasses.replace(config, source=tuple(reached(settings, source) for source in config.sources))
    alertmanager = build(AlertmanagerConfig, "serve.alertmanager", *layers("serve.alertmanager"))
    everywhere, given = layers("serve.probe")
    logins = {
        name: build(KafkaLoginConfig, "serve.probe", everywhere, layer, given, subject=f"cluster {name}")
        for name, layer in settings.clusters.items()
    }
    probe = dataclasses.replace(build(ProbeConfig, "serve.probe", everywhere, given), clusters=logins)
    return dataclasses.replace(config, alertmanager=alertmanager, probe=probe, teams=settings.teams)


def maintenance_file(settings: Settings, cluster: str, flags: Layer) -> Path:
    """Return the cluster's file of maintenance windows. Raise ConfigError without a file or for an unknown cluster."""
    known = known_clusters(settings)
    if known and cluster not in known:
        raise ConfigError(_unknown(f"no cluster {cluster!r} is configured", cluster, known))
    own = settings.clusters.get(cluster, {})
    for layer in (flags, own, settings.sections["watch"]):
        if "maintenance_file" in layer:
            path = layer["maintenance_file"].value
            if isinstance(path, Path):
                return path
            break
    key = keys_of(IngestConfig)["maintenance_file"]
    raise ConfigError(
        f"cluster {cluster}: 'maintenance_file' is not set. Give {key.flag}, {variable_name('watch', key)}, "
        "or maintenance_file in the [watch] table of the --config file"
    )


def known_clusters(settings: Settings) -> list[str]:
    """Return the clusters that the file and the environment name."""
    named = settings.sections["watch"].get("cluster")
    return list(dict.fromkeys([*settings.clusters, *([str(named.value)] if named else [])]))


def cluster_zookeeper(settings: Settings, cluster: str) -> ZooKeeperConfig | None:
    """Return the address of a cluster's ZooKeeper, if it is configured. Raise ConfigError."""
    own, everywhere = settings.clusters.get(cluster, {}), settings.sections["watch"]
    if "zookeeper" not in {**everywhere, **own}:
        return None
    return build(ZooKeeperConfig, "watch", everywhere, own, subject=f"cluster {cluster}")


def watched_into(settings: Settings, stream: Address, connect_timeout_seconds: float) -> list[IngestConfig]:
    """Return each cluster whose ZooKeeper is configured, with settings as if it was watched into this stream."""
    job = "the job"
    to = {"to": Setting(stream, job), "connect_timeout_seconds": Setting(connect_timeout_seconds, job)}
    everywhere = {key: value for key, value in settings.sections["watch"].items() if key != "cluster"}
    return [
        build(IngestConfig, "watch", everywhere, settings.clusters.get(name, {}), to, {"cluster": Setting(name, "")})
        for name in known_clusters(settings)
        if cluster_zookeeper(settings, name) is not None
    ]


def maintenance_files(settings: Settings, flags: Layer) -> list[Path]:
    """Return every configured file of maintenance windows. Raise ConfigError if there is none."""
    layers = [flags] if "maintenance_file" in flags else [settings.sections["watch"], *settings.clusters.values()]
    files = [layer["maintenance_file"].value for layer in layers if "maintenance_file" in layer]
    found = dict.fromkeys(file for file in files if isinstance(file, Path))
    if not found:
        raise ConfigError("'maintenance_file' is not set. Give --maintenance-file, or set it in [watch]")
    return list(found)


def stream_config(settings: Settings, flags: Layer) -> StreamConfig:
    """Return the job, and the settings of each cluster's brokers."""
    everywhere = settings.sections["stream"]
    brokers = {
        name: brokers_config(settings, layer, flags, f"cluster {name}") for name, layer in settings.clusters.items()
    }
    config = build(StreamConfig, "stream", everywhere, flags)
    source, sink = reached(settings, config.source), reached(settings, config.sink)
    ranks = settings.teams.ranks
    return dataclasses.replace(config, source=source, sink=sink, clusters=brokers, topic_ranks=ranks)


def reached(settings: Settings, address: Address) -> Address:
    """Return the address of a stream with the login of [kafka], which all Kafka streams and outputs share."""
    if not isinstance(address, KafkaAddress):
        return address
    return dataclasses.replace(address, login=build(KafkaLogin, "kafka", settings.sections["kafka"]))


def variable_name(section: str, key: Key) -> str:
    """Return the environment variable of a section's key."""
    return f"{_PREFIX}{section.replace('.', _NESTING)}{_NESTING}{key.name}".upper()


def flag_name(section: str, key: Key) -> str:
    """Return the key's flag. A nested table's name precedes it."""
    *_, table = section.split(".")
    return key.flag if table == section else f"--{table}-{key.flag[2:]}"


def option_name(section: str, key: Key) -> str:
    """Return the name of the flag's parameter in a command's function."""
    *_, table = section.split(".")
    return key.field if table == section else f"{table}_{key.field}"


def _load(path: Path) -> dict[str, Any]:
    try:
        return read_toml(path, _MOST_BYTES)
    except OSError as error:
        raise ConfigError(f"{path}: cannot read the configuration: {error.strerror}") from error
    except TomlError as error:
        raise ConfigError(f"{path}: {error}") from error


def _cluster_keys() -> dict[str, Key]:
    keys = keys_of(IngestConfig)
    del keys["cluster"]  # the table's name shows it
    return keys | keys_of(BrokersConfig) | keys_of(KafkaLoginConfig)


def _table(value: object, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError(f"{place} must be a table, not {value!r}")
    return value


def _tables_of(section: str) -> list[str]:
    """Return the names of the tables within a section's table."""
    within = f"{section}." if section else ""
    rest = [name.removeprefix(within) for name in SECTIONS if name.startswith(within)]
    return [name for name in rest if "." not in name]


def _read_section(section: str, table: Mapping[str, Any], path: Path | None) -> dict[str, dict[str, Setting]]:
    """Return the settings of a section's table and of the tables within it, by section."""
    inner = _tables_of(section)
    sections = {}
    for name in inner:
        if name in table:
            place = f"{path}: [{section}.{name}]"
            sections.update(_read_section(f"{section}.{name}", _table(table[name], place), path))
    own = {name: value for name, value in table.items() if name not in inner}
    known = [*keys_of(SECTIONS[section]), *inner]
    for name in own:
        if name not in known:
            raise ConfigError(_unknown(f"{path}: [{section}]: unknown key {name!r}", name, known))
    return {section: _read_table(keys_of(SECTIONS[section]), own, f"{path}: [{section}]"), **sections}


def _read_table(keys: Mapping[str, Key], table: Mapping[str, Any], place: str) -> dict[str, Setting]:
    settings = {}
    for name, value in table.items():
        if name not in keys:
            raise ConfigError(_unknown(f"{place}: unknown key {name!r}", name, keys))
        settings[name] = Setting(_value(keys[name].from_toml, value, f"{place}: {name}"), f"{place} {name}")
    return settings


def _read_variable(
    variable: str, text: str, sections: dict[str, dict[str, Setting]], clusters: dict[str, dict[str, Setting]]
) -> None:
    by_variable = {
        variable_name(section, key): (section, key)
        for section, config_type in SECTIONS.items()
        for key in keys_of(config_type).values()
    }
    if variable in by_variable:
        section, key = by_variable[variable]
        setting = Setting(_value(key.from_text, text, variable), variable)
        sections[section][key.name] = setting.over(sections[section].get(key.name))
        return
    of_cluster = re.fullmatch(rf"{_PREFIX}CLUSTERS__(?P<cluster>.+)__(?P<key>[A-Z0-9_]+?)", variable)
    keys = {key.name.upper(): key for key in _cluster_keys().values()}
    if of_cluster is None:
        raise ConfigError(_unknown(f"unknown environment variable {variable}", variable, by_variable))
    if of_cluster["key"] not in keys:
        message = f"unknown key {of_cluster['key']} in the environment variable {variable}"
        raise ConfigError(_unknown(message, of_cluster["key"], keys))
    key = keys[of_cluster["key"]]
    cluster = _cluster_meant(of_cluster["cluster"], clusters, variable)
    layer = clusters.setdefault(cluster, {})
    layer[key.name] = Setting(_value(key.from_text, text, variable), variable).over(layer.get(key.name))


def _cluster_meant(written: str, clusters: Iterable[str], variable: str) -> str:
    # A variable's name has no dash or dot and is mostly upper case. A cluster's name may have both.
    meant = [name for name in clusters if re.sub(r"[^A-Za-z0-9]", "_", name).upper() == written.upper()]
    if len(meant) > 1:
        raise ConfigError(f"the environment variable {variable} could mean any of the clusters {', '.join(meant)}")
    return meant[0] if meant else written.lower()


def _value(convert: Callable[[Any], _Value], written: object, place: str) -> _Value:
    try:
        return convert(written)
    except ValueError as error:
        raise ConfigError(f"{place}: {error}") from error


def _unknown(message: str, name: str, known: Iterable[str]) -> str:
    choices = list(known)
    return message + (did_you_mean(near(name, choices)) or f". Expected one of {', '.join(choices)}")
