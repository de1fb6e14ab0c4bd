"""Command-line options from the fields of a configuration, and `--config`.

This module has the help text of each key, for help pages and `docs/reference-config.toml`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from functools import partial, wraps
from pathlib import Path
from typing import Any, Final

import click

from cli.settings.config import (
    SECTIONS,
    Settings,
    flag_name,
    option_name,
    read_flags,
    read_settings,
    variable_name,
)
from cli.settings.keys import NONE, Key, keys_of
from ingest.config import IngestConfig, ZooKeeperConfig
from streaming.config import StreamConfig

Command = Callable[..., Any]

HELP: Final[Mapping[str, Mapping[str, str]]] = {
    "watch": {
        "cluster": "Name of the cluster. Required if the file has no [clusters.NAME] table.",
        "zookeeper": "The cluster's ensemble: HOST:PORT[,HOST:PORT...][/chroot].",
        "zookeeper_username": "SASL user name (DIGEST-MD5). Without it and a principal, no login.",
        "zookeeper_password_file": "File that contains only the password. Or use the variable below.",
        "zookeeper_password_variable": "Environment variable with the password.",
        "zookeeper_principal": "Kerberos principal (GSSAPI), like kontrast/monitor@EXAMPLE.COM.",
        "zookeeper_keytab_file": "Keytab with the principal's keys.",
        "zookeeper_service_name": "First part of the servers' principal.",
        "zookeeper_tls": "Use TLS to ZooKeeper. Its certificate must be valid for the host in the address.",
        "zookeeper_ca_file": "Trusted authorities (PEM). The system's if unset.",
        "zookeeper_certificate_file": "Client certificate (PEM). Optional unless ZooKeeper requires client "
        "authentication.",
        "zookeeper_key_file": "Key of the client certificate (PEM), without a passphrase.",
        "to": "Stream of changes, as journal:DIRECTORY or kafka://HOST:PORT/TOPIC. Never a topic of a watched cluster.",
        "coalesce_ms": "Changes within this many milliseconds are read together.",
        "heartbeat_seconds": "Heartbeat interval. Kontrast measures deadlines in heartbeats.",
        "connect_timeout_seconds": "Longest wait for ZooKeeper at the start.",
        "session_timeout_seconds": "ZooKeeper session timeout to request.",
        "multi_read_paths": "Most znodes per request.",
        "read_budget_znodes_per_second": "Most znodes read per second. Unlimited if unset.",
        "resync_jitter_seconds": "Longest random pause before the complete read after a lost connection.",
        "sweep_seconds": "Longest time in which every znode is read once more, a few per heartbeat, to find changes "
        "and ACLs that no watch reports. A minute suffices for 30,000 znodes. none reads no znode twice.",
        "ensemble_interval_seconds": "Interval between two rounds of questions to the servers of the ensemble "
        "(four-letter words). none asks no server.",
        "zookeeper_admin_port": "Port of the servers' AdminServer, to ask there if the four-letter word mntr is not "
        "allowed. Not asked if unset.",
        "jute_maxbuffer_bytes": "The value of jute.maxbuffer on servers and brokers, the smaller one if they differ.",
        "election_zookeeper": "Ensemble in which several watchers of a cluster elect one, HOST:PORT[,HOST:PORT...]"
        "[/chroot]. Kontrast writes to it. If unset, this watcher is the only one.",
        "election_on_watched": "Allow the watched ensemble for election_zookeeper. It then gets the election's znodes.",
        "election_username": "SASL user name (DIGEST-MD5) for the election's ensemble. Without it and a principal, "
        "no login.",
        "election_password_file": "File that contains only its password. Or use the variable below.",
        "election_password_variable": "Environment variable with its password.",
        "election_principal": "Kerberos principal (GSSAPI) for the election's ensemble.",
        "election_keytab_file": "Keytab with this principal's keys.",
        "election_service_name": "First part of the principal of its servers.",
        "election_tls": "Use TLS to the election's ensemble. Its certificate must be valid for that host.",
        "election_ca_file": "Certificates (PEM) that the election's ensemble is trusted by. The system's if unset.",
        "election_certificate_file": "Client certificate (PEM) for the election's ensemble, if it asks for one.",
        "election_key_file": "Key of the client certificate (PEM).",
        "metrics_listen": "HOST:PORT for the watcher's metrics. Port 0 takes any free port. No metrics if unset.",
        "metrics_tls_certificate_file": "Server certificate with its chain (PEM) for the metrics. No TLS if unset.",
        "metrics_tls_key_file": "Key of the server certificate (PEM), without a passphrase.",
        "metrics_username": "User name for HTTP basic authentication. No login if unset.",
        "metrics_password_file": "File that contains only the password. Or use the variable below.",
        "metrics_password_variable": "Environment variable with the password.",
        "metrics_allowed_hosts": "Host names in requests besides this machine's. * allows all.",
        "maintenance_file": "File of maintenance windows, for all clusters or one. Its folder must exist. "
        "No windows if unset.",
        "journal_fsync": "When to force a journal to disk (always, interval or never).",
        "journal_retain_bytes": "Size limit of a journal, or none. The oldest segments are dropped first.",
        "journal_retain_seconds": "Age limit of a journal. The oldest segments are dropped first. Unlimited if unset.",
    },
    "stream": {
        "from": "Stream of `kontrast watch`.",
        "to": "Outputs, as a directory with one journal per output or a prefix of Kafka topics.",
        "checkpoint": "Directory of the job's state, or its URI on a file system of Hadoop, like "
        "hdfs://namenode/kontrast. It must survive the loss of the machine.",
        "master": "Cores of this machine for Spark, as local[N], or local[*] for all.",
        "driver_memory": "Heap of the Java process, like 512m or 2g.",
        "file_system": "Writer of a local checkpoint, fast, or hadoop for Hadoop's own, slower way.",
        "hadoop_directory": "Directory with core-site.xml, hdfs-site.xml and jars for a checkpoint in hdfs:// or s3a://.",
        "chunk_count": "Chunks of a cluster's topics. The first start of a checkpoint fixes it.",
        "shuffle_partitions": "Clusters processed at a time. If changed, the job begins again at the newest complete "
        "read. If unset, one per core and at most one per configured cluster, which grows with the fleet.",
        "max_batch_bytes": "Most bytes of a batch from a journal.",
        "max_batch_records": "Most records of a batch from Kafka.",
        "connect_timeout_seconds": "Longest wait for Kafka at the start.",
        "stalled_after_seconds": "Longest time without a finished batch while records wait. The job then ends with "
        "exit code 4. Raise it together with max_batch_bytes.",
        "broker_config": "Settings in the files of all clusters' brokers, by Kafka's names.",
        "kafka_version": "Release of all clusters' brokers, like 2.8. Inferred from the znodes if unset.",
        "preferred_controllers": "Brokers that should be controller. Any if unset.",
        "clean_stop_pages_after_seconds": "What a clean stop takes from clients pages after this time, without a "
        "maintenance window.",
        "output_retain_bytes": "Size limit of an output's journal, by its name, like transitions. 4294967296 by "
        "default, or none. Current rows of metadata, alerts, gauges and job always stay.",
        "output_retain_seconds": "Age limit of an output's journal, by its name. Unlimited by default.",
    },
    "serve": {
        "from": "Outputs of `kontrast stream`, or of several jobs with different clusters.",
        "listen": "HOST:PORT or [IPV6]:PORT of the pages. Port 0 takes any free port.",
        "connect_timeout_seconds": "Longest wait for the outputs at the start.",
        "tls_certificate_file": "Server certificate with its chain (PEM). No TLS if unset.",
        "tls_key_file": "Key of the server certificate (PEM), without a passphrase.",
        "username": "User name for HTTP basic authentication. No login if unset.",
        "password_file": "File that contains only the password. Or use the variable below.",
        "password_variable": "Environment variable with the password.",
        "allowed_hosts": "Host names in requests, as behind a proxy, besides localhost, the name in `listen` and this "
        "machine's names. IP addresses are always allowed. * allows all.",
        "partition_detail_limit": "Most partitions per cluster by name in /metrics. Others are only counted.",
        "broker_detail_limit": "Most brokers per cluster by name in /metrics.",
        "alert_detail_limit": "Most alerts per cluster by name in /metrics. All are counted.",
        "start_command": "Command that starts a broker, to copy from the page. The page replaces {host} and {broker}.",
        "past_rows": "Earlier rows that the page keeps in memory, per cluster and output, about 1 kB each.",
    },
    "serve.alertmanager": {
        "urls": "Alertmanagers, http://HOST:PORT each. Each gets every alert. No direct delivery if unset.",
        "username": "User name for HTTP basic authentication. No login if unset.",
        "password_file": "File that contains only the password. Read again at each delivery.",
        "password_variable": "Environment variable with the password.",
        "bearer_token_file": "File with a bearer token, instead of a login. Read again at each delivery.",
        "bearer_token_variable": "Environment variable with the bearer token.",
        "ca_file": "Trusted authorities (PEM) for https. The system's if unset.",
        "timeout_seconds": "Longest answer time of an Alertmanager.",
        "resend_interval_seconds": "Interval at which an open alert is sent again.",
        "resolve_timeout_seconds": "Time after which Alertmanager ends an alert that is no longer sent.",
        "crash_without_damage": "Severity of BrokerCrashed while clients can use every partition, page or warn.",
        "stale_after_seconds": "Age of the newest heartbeat after which a cluster's alerts are unknown.",
        "external_labels": "Labels of every alert, like those of a Prometheus.",
        "generator_url": "Target of Alertmanager's source link. No link if unset.",
        "page_url": "Address of this exporter's live page, for boards and the annotation page_url. No annotation if "
        "unset.",
        "runbook_url": "Address where you publish docs/runbooks, before /ALERT.md. No link if unset.",
    },
    "serve.probe": {
        "brokers": "Ask each live broker for its metadata, and compare it with ZooKeeper. Reads only.",
        "interval_seconds": "Interval between requests to a broker.",
        "confirm_seconds": "Shortest duration of a difference that counts.",
        "timeout_seconds": "Longest time for a broker's connection, and for its answer.",
        "requests_per_second": "Most brokers of a cluster to ask per second.",
        "groups": "Ask the brokers for consumer groups and transactional ids, to show whom an outage stops.",
        "groups_interval_seconds": "Time between two rounds of questions about groups.",
        "group_requests_per_second": "Most requests about groups per second, to all brokers of a cluster together.",
        "groups_directory": "Directory that keeps the last answers about groups. Only in memory if unset.",
        "kafka_listener": "Listener of the brokers to ask. If unset, the one named like the protocol.",
        "kafka_quorum": "HOST:PORT of the KRaft controllers of a migrating cluster, and of a first broker in KRaft "
        "mode. Kontrast asks for their modes and compares the quorum's metadata with ZooKeeper's. If unset, it asks "
        "through the brokers during a migration, if `brokers` is on.",
        "kafka_tls": "Use TLS to brokers. A certificate must be valid for the registered host.",
        "kafka_ca_file": "Trusted authorities (PEM). The system's if unset.",
        "kafka_certificate_file": "Client certificate (PEM). Optional unless brokers require client authentication.",
        "kafka_key_file": "Key of the client certificate (PEM), without a passphrase.",
        "kafka_sasl_mechanism": "Login mechanism, PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or GSSAPI.",
        "kafka_username": "SASL user name. It needs permission to describe all topics. No login if unset.",
        "kafka_password_file": "File that contains only the password. Or use the variable below.",
        "kafka_password_variable": "Environment variable with the password.",
        "kafka_principal": "Kerberos principal of GSSAPI, like kontrast/monitor@EXAMPLE.COM.",
        "kafka_keytab_file": "Keytab with the principal's keys.",
        "kafka_service_name": "First part of the brokers' principal.",
    },
    "kafka": {
        "tls": "Use TLS to the brokers. A certificate must be valid for the host in the address.",
        "ca_file": "Trusted authorities (PEM). The system's if unset.",
        "certificate_file": "Client certificate (PEM). Optional unless brokers require client authentication.",
        "key_file": "Key of the client certificate (PEM, PKCS #8), without a passphrase.",
        "sasl_mechanism": "Login mechanism, PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER or GSSAPI.",
        "username": "User name of PLAIN and SCRAM. No login if unset.",
        "password_file": "File that contains only the password. Or use password_variable.",
        "password_variable": "Name of the environment variable that holds the password.",
        "token_file": "File with the token of OAUTHBEARER, which another program renews.",
        "principal": "Kerberos principal of GSSAPI, like kontrast/monitor@EXAMPLE.COM.",
        "keytab_file": "Keytab with the principal's keys, at the same path on each of Spark's executors.",
        "service_name": "First part of the brokers' principal.",
    },
}


def _read_file(ctx: click.Context, _param: click.Parameter, file: Path | None) -> Settings | None:
    return None if ctx.resilient_parsing else read_settings(file, os.environ)


# The command gets the `settings` of the file and the environment.
config_option = click.option(
    "--config",
    "settings",
    type=click.Path(path_type=Path),
    callback=_read_file,
    envvar="KONTRAST_CONFIG",
    metavar="FILE",
    help="TOML file with the settings of all commands. [env: KONTRAST_CONFIG]",
)


check_option = click.option(
    "--check", is_flag=True, help="Validate the settings and connect to everything that they name, without a start."
)

# Headings of the options of a section on help pages.
_GROUPS: Final[Mapping[str, str]] = {
    "serve": "Sources, pages and access: [serve]",
    "serve.alertmanager": "Delivery to Alertmanager: [serve.alertmanager]",
    "serve.probe": "Comparison with brokers: [serve.probe]",
}


class GroupedCommand(click.Command):
    """A command whose help page groups the options by section of the settings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the groups in order, ungrouped options first."""
        groups: dict[str, list[tuple[str, str]]] = {"Options": []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record is not None:
                groups.setdefault(getattr(param, "group", "Options"), []).append(record)
        for title, records in groups.items():
            with formatter.section(title):
                formatter.write_dl(records)


def service_command(
    examples: str, ended: str = "stopped by Ctrl-C or SIGTERM", more_codes: str = ""
) -> Callable[[Command], click.Command]:
    """Return a decorator for a command that runs until it is stopped, with `--config` and `--check`."""
    epilog = (
        f"\b\nExamples:\n{examples.strip(chr(10))}\n\n\b\nExit codes:\n"
        f"  0  {ended}, or --check passed\n"
        "  1  failed unexpectedly\n"
        "  2  a setting is wrong, before anything started\n"
        "  3  a required service or file cannot be used\n"
        f"{more_codes}"
    )

    def decorate(command: Command) -> click.Command:
        return click.command(epilog=epilog, cls=GroupedCommand)(config_option(check_option(command)))

    return decorate


class _SettingOption(click.Option):
    """An option that is a setting, with the name of its group on help pages."""

    def __init__(self, *args: Any, group: str = "Options", **extra: Any) -> None:  # noqa: ANN401 (click's own)
        super().__init__(*args, **extra)
        self.group = group


def settings_options(section: str, *, leave_out: Collection[str] = (), into: str = "") -> Callable[[Command], Command]:
    """Return a decorator that gives a command one option per key of the section, and their values as one layer.

    The layer's parameter is `into`, by default the section's last name.
    """
    keys = [key for key in keys_of(SECTIONS[section]).values() if key.name not in leave_out]

    def decorate(command: Command) -> Command:
        @wraps(command)
        def layered(*arguments: Any, **given: Any) -> Any:  # noqa: ANN401 (click's own)
            values = {name: given.pop(name) for name in [option_name(section, key) for key in keys]}
            layer = read_flags(section, values)
            return command(*arguments, **{into or section.rpartition(".")[2]: layer}, **given)

        for key in reversed(keys):
            _option(section, key)(layered)
        return layered

    return decorate


# Options of a session that only reads, and of what the brokers' files contain.
zookeeper_options: Final = settings_options(
    "watch", leave_out=keys_of(IngestConfig).keys() - keys_of(ZooKeeperConfig).keys(), into="of_session"
)
brokers_options: Final = settings_options(
    "stream", leave_out=keys_of(StreamConfig).keys() - {"broker_config", "kafka_version"}, into="of_brokers"
)


def describe_default(key: Key) -> str:
    """Return a key's default as text, or an empty text."""
    if key.required or key.default in ("", (), {}):
        return ""
    if key.default is None:
        return NONE
    if isinstance(key.default, bool):
        return str(key.default).lower()
    if isinstance(key.default, tuple):
        return ",".join(map(str, key.default))
    return str(getattr(key.default, "value", key.default))


def _option(section: str, key: Key) -> Callable[[Command], Command]:
    default = describe_default(key)
    default = "" if key.default is None else default  # the help text explains an unset default
    notes = [note for note in (default and f"default: {default}", f"env: {variable_name(section, key)}") if note]
    text = f"{HELP[section].get(key.name, '')} [{'; '.join(notes)}]"
    flag, option = flag_name(section, key), option_name(section, key)
    option_of = partial(click.option, cls=_SettingOption, group=_GROUPS.get(section, "Options"))
    if key.is_switch:
        return option_of(f"{flag}/--no-{flag[2:]}", option, default=None, help=text)
    if key.is_table or (key.is_address and key.is_several):
        text, metavar = f"{text[:-1]}; repeatable]", "KEY=VALUE" if key.is_table else _metavar(key)
        return option_of(flag, option, multiple=True, callback=_joined, metavar=metavar, help=text)
    in_seconds = (flag.removesuffix("-seconds"),) if flag.endswith("-timeout-seconds") else ()  # as users expect
    return option_of(flag, *in_seconds, option, metavar=_metavar(key), help=text)


def _joined(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> str | None:
    """Return the values in one text, as the environment has them, or None without the flag."""
    return ",".join(values) if values else None


def _metavar(key: Key) -> str:
    if key.is_address:
        return "ADDRESS"
    if key.expected.startswith(("a number", "a whole number")):
        return "NUMBER"
    if key.expected.startswith("one of "):
        return "|".join(key.expected.removeprefix("one of ").split(", "))
    return "LIST" if key.expected == "a list" else "TEXT"
