"""Make a part's command-line options from the fields of its configuration, and `--config`.

The words on each key are here: help pages and `docs/reference-config.toml` take them from this file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from cli.settings.config import SECTIONS, flag_name, option_name, variable_name
from cli.settings.keys import NONE, Key, keys_of

Command = Callable[..., Any]

HELP: Final[Mapping[str, Mapping[str, str]]] = {
    "watch": {
        "cluster": "The one cluster to watch, where no [clusters.NAME] table names any.",
        "zookeeper": "The cluster's ensemble: HOST:PORT[,HOST:PORT...][/chroot].",
        "zookeeper_username": "SASL user name (DIGEST-MD5). Unset: no login.",
        "zookeeper_password_file": "File with the password and nothing else; a login needs this or the next.",
        "zookeeper_password_variable": "Name of the environment variable that holds the password.",
        "zookeeper_tls": "Speak TLS to ZooKeeper; its certificate must be valid for the host in the address.",
        "zookeeper_ca_file": "PEM file with the authorities to trust. Unset: those of the system.",
        "zookeeper_certificate_file": "PEM file with the certificate to show. "
        "Unset: none is shown, where ZooKeeper asks for none.",
        "zookeeper_key_file": "PEM file with that certificate's key, without a passphrase.",
        "to": "Where the changes go: journal:DIRECTORY or kafka://HOST:PORT/TOPIC, never a topic of a watched cluster.",
        "coalesce_ms": "Changes that come within this many milliseconds are read together.",
        "heartbeat_seconds": "How often the watcher says that it is alive; deadlines are judged against it.",
        "connect_timeout_seconds": "How long ZooKeeper may be unreachable at the start before the command gives up.",
        "session_timeout_seconds": "The ZooKeeper session timeout to ask for.",
        "multi_read_paths": "Most znodes that one request reads.",
        "read_budget_znodes_per_second": "Most znodes read in a second. Unset: as fast as ZooKeeper answers.",
        "resync_jitter_seconds": "Longest random pause before everything is read again after a lost connection.",
        "election_zookeeper": "Ensemble over which several watchers of a cluster elect one, HOST:PORT[,HOST:PORT...]"
        "[/chroot]; it is written to. Unset: this watcher is the only one.",
        "election_on_watched": "Let election_zookeeper be the watched ensemble, which then gets the election's znodes.",
        "metrics_listen": "HOST:PORT to answer Prometheus on about the watching itself; port 0 takes any that is free. "
        "Unset: there is no page.",
        "metrics_tls_certificate_file": "PEM file with the certificate to show there and its chain. Unset: no TLS.",
        "metrics_tls_key_file": "PEM file with that certificate's key, without a passphrase.",
        "metrics_username": "Who may ask there (HTTP basic authentication). Unset: whoever can connect.",
        "metrics_password_file": "File with the password and nothing else; a login needs this or the next.",
        "metrics_password_variable": "Name of the environment variable that holds the password.",
        "metrics_allowed_hosts": "Host names that clients may ask for there, besides this machine's; * allows all.",
        "maintenance_file": "File of maintenance windows, of all clusters or of one, that `kontrast maintenance` and "
        "people write; its folder must be there. Unset: there are no windows.",
        "journal_fsync": "When a journal is forced to disk: always, interval or never.",
        "journal_retain_bytes": "Bytes of a journal that are kept, the oldest go first; none: any number.",
        "journal_retain_seconds": "Age up to which a journal is kept, the oldest go first. Unset: any age.",
    },
    "stream": {
        "from": "The stream that `kontrast watch` writes.",
        "to": "Where the outputs go: a directory that holds one journal an output, or a prefix of Kafka topics.",
        "checkpoint": "Directory with what the job must not forget, on a local disk or a mounted volume.",
        "master": "Cores of this machine that Spark may use: local[N], or local[*] for all.",
        "driver_memory": "Heap of the Java process, like 512m or 2g.",
        "file_system": "How the checkpoint is written: fast, or hadoop for Hadoop's own, slower way.",
        "chunk_count": "Parts that a cluster's topics are held in; fixed by a checkpoint's first start.",
        "shuffle_partitions": "Clusters worked on at once, fixed by the first start. Unset: one for each core, at most "
        "as many as clusters are configured.",
        "max_batch_bytes": "Most bytes that one batch takes from a journal.",
        "max_batch_records": "Most records that one batch takes from Kafka.",
        "connect_timeout_seconds": "How long Kafka may be unreachable at the start before the command gives up.",
        "broker_config": "What the files of all clusters' brokers set, by Kafka's names.",
        "kafka_version": "The release of all clusters' brokers, like 2.8. Unset: inferred from the znodes.",
        "preferred_controllers": "Brokers on which the controller should be. Unset: any.",
        "output_retain_bytes": "Bytes that are kept of an output's journal, by its name, like transitions; 4294967296 "
        "where it is not named, none: no bound. Of metadata, alerts, gauges and job what still holds stays.",
        "output_retain_seconds": "Age up to which an output's journal is kept, by its name; no bound where it is not "
        "named.",
    },
    "serve": {
        "from": "The outputs of `kontrast stream`.",
        "listen": "HOST:PORT or [IPV6]:PORT to answer on; port 0 takes any that is free.",
        "connect_timeout_seconds": "How long the outputs may be unreachable at the start before the command gives up.",
        "tls_certificate_file": "PEM file with the certificate to show and its chain. Unset: no TLS.",
        "tls_key_file": "PEM file with that certificate's key, without a passphrase.",
        "username": "Who may ask (HTTP basic authentication). Unset: whoever can connect.",
        "password_file": "File with the password and nothing else; a login needs this or the next.",
        "password_variable": "Name of the environment variable that holds the password.",
        "allowed_hosts": "Host names that clients may ask for, as behind a proxy, besides localhost, the name in "
        "`listen` and this machine's names. IP addresses are always allowed, * allows all.",
        "partition_detail_limit": "Most partitions of a cluster that /metrics names; the rest is counted only.",
        "broker_detail_limit": "Most brokers of a cluster that /metrics and /metrics/jmx name.",
        "alert_detail_limit": "Most alerts of a cluster that /metrics names; all are counted.",
        "partitions_page": "Serve /metrics/partitions: every partition of every cluster.",
        "jmx_page": "Serve /metrics/jmx: what follows from metadata, by the names of Kafka's JMX exporter. Only for "
        "clusters whose JMX is not scraped: two sources double every sum.",
        "jmx_port": "Port of the brokers' JMX exporters, for /sd/brokers and /metrics/jmx. Unset: their listener's.",
    },
    "serve.alertmanager": {
        "urls": "Alertmanagers that get the alerts, http://HOST:PORT each; each gets all of them. Unset: none does.",
        "username": "Who to log in as (HTTP basic authentication). Unset: no login.",
        "password_file": "File with the password and nothing else; read again each time.",
        "password_variable": "Name of the environment variable that holds the password.",
        "bearer_token_file": "File with a bearer token, in place of a login; read again each time.",
        "bearer_token_variable": "Name of the environment variable that holds the bearer token.",
        "ca_file": "PEM file with the authorities to trust for https. Unset: those of the system.",
        "timeout_seconds": "How long an Alertmanager may take to answer.",
        "resend_interval_seconds": "How often an alert that stands is sent again.",
        "resolve_timeout_seconds": "How long an alert stands for Alertmanager when it is no longer sent.",
        "stale_after_seconds": "How old a cluster's newest heartbeat may be before its alerts are unknown.",
        "external_labels": "Labels that every alert gets, like those of a Prometheus.",
        "generator_url": "Where Alertmanager's link to the source leads. Unset: there is no link.",
        "page_url": "Where this exporter's live page is reached, for the annotation page_url. Unset: there is none.",
        "runbook_url": "Where docs/runbooks is published, put before /ALERT.md. "
        "Unset: alerts have no link to a runbook.",
    },
    "serve.probe": {
        "brokers": "Ask each live broker for its metadata, read-only, and compare it with what ZooKeeper says.",
        "interval_seconds": "How often a broker is asked.",
        "confirm_seconds": "How long a difference must last, at least.",
        "timeout_seconds": "How long a broker may take to connect, and to answer.",
        "requests_per_second": "Most brokers of a cluster that are asked in a second.",
        "kafka_listener": "Name of the brokers' listener to ask. Unset: the one that is called as the protocol is.",
        "kafka_quorum": "HOST:PORT of the KRaft controllers of a cluster that migrates, and of a first broker in KRaft "
        "mode: nodes are asked for their mode, the quorum's metadata is compared with ZooKeeper's. Unset: asked "
        "through the brokers while a migration is under way, if `brokers` is on.",
        "kafka_tls": "Speak TLS to brokers; a certificate must be valid for the host that is registered.",
        "kafka_ca_file": "PEM file with the authorities to trust. Unset: those of the system.",
        "kafka_certificate_file": "PEM file with the certificate to show. "
        "Unset: none is shown, where brokers ask for none.",
        "kafka_key_file": "PEM file with that certificate's key, without a passphrase.",
        "kafka_sasl_mechanism": "How to log in: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512. Unset: no login.",
        "kafka_username": "SASL user name, which must be allowed to describe all topics. Unset: no login.",
        "kafka_password_file": "File with the password and nothing else; a login needs this or the next.",
        "kafka_password_variable": "Name of the environment variable that holds the password.",
    },
    "kafka": {
        "tls": "Speak TLS to the brokers; a certificate must be valid for the host in the address.",
        "ca_file": "PEM file with the authorities to trust. Unset: those of the system.",
        "certificate_file": "PEM file with the certificate to show. Unset: none is shown.",
        "key_file": "PEM file with that certificate's key (PKCS #8), without a passphrase.",
        "sasl_mechanism": "How to log in: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER.",
        "username": "User name of PLAIN and SCRAM. Unset: no login.",
        "password_file": "File with the password and nothing else. Alternative: password_variable.",
        "password_variable": "Name of the environment variable that holds the password.",
        "token_file": "File with the token of OAUTHBEARER, which another program renews.",
    },
}

config_option = click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    envvar="KONTRAST_CONFIG",
    metavar="FILE",
    help="TOML file with the settings of all commands. [env: KONTRAST_CONFIG]",
)


check_option = click.option(
    "--check", is_flag=True, help="Validate the settings, reach everything that they name, and start nothing."
)

# How the help page names the options of a section.
_GROUPS: Final[Mapping[str, str]] = {
    "serve": "What is read, and who is answered where: [serve]",
    "serve.alertmanager": "Telling Alertmanagers: [serve.alertmanager]",
    "serve.probe": "Comparing what brokers answer clients: [serve.probe]",
}


class GroupedCommand(click.Command):
    """A command whose help page groups the options by the section of the settings that they belong to."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the groups in their order, what belongs to none first."""
        groups: dict[str, list[tuple[str, str]]] = {"Options": []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                groups.setdefault(getattr(param, "group", "Options"), []).append(record)
        for title, records in groups.items():
            with formatter.section(title):
                formatter.write_dl(records)


def service_command(examples: str, ended: str = "stopped by Ctrl-C or SIGTERM") -> Callable[[Command], click.Command]:
    """A decorator that makes a command which runs until it is stopped, with `--config` and `--check`."""
    epilog = (
        f"\b\nExamples:\n{examples.strip(chr(10))}\n\n\b\nExit codes:\n"
        f"  0  {ended}; with --check: all is well\n"
        "  1  failed unexpectedly\n"
        "  2  a setting is wrong; nothing was started\n"
        "  3  something that is needed cannot be used; it is named\n"
    )

    def decorate(command: Command) -> click.Command:
        return click.command(epilog=epilog, cls=GroupedCommand)(config_option(check_option(command)))

    return decorate


class _SettingOption(click.Option):
    """An option that is a setting, with the name of its group on help pages."""

    def __init__(self, *args: Any, group: str = "Options", **extra: Any) -> None:  # noqa: ANN401 (click's own)
        super().__init__(*args, **extra)
        self.group = group


def settings_options(section: str, *, leave_out: Collection[str] = ()) -> Callable[[Command], Command]:
    """A decorator that gives a command one option a key of the section."""

    def decorate(command: Command) -> Command:
        for key in reversed(keys_of(SECTIONS[section]).values()):
            if key.name not in leave_out:
                command = _option(section, key)(command)
        return command

    return decorate


def describe_default(key: Key) -> str:
    """A key's default as it would be written, empty where there is none to name."""
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
    default = "" if key.default is None else default  # what that means is in the text
    notes = [note for note in (default and f"default: {default}", f"env: {variable_name(section, key)}") if note]
    text = f"{HELP[section].get(key.name, '')} [{'; '.join(notes)}]"
    flag, option = flag_name(section, key), option_name(section, key)
    option_of = partial(click.option, cls=_SettingOption, group=_GROUPS.get(section, "Options"))
    if key.is_switch:
        return option_of(f"{flag}/--no-{flag[2:]}", option, default=None, help=text)
    if key.is_table:
        text = f"{text[:-1]}; may be given again]"
        return option_of(flag, option, multiple=True, callback=_joined, metavar="KEY=VALUE", help=text)
    return option_of(flag, *_short_flag(flag), option, metavar=_metavar(key), help=text)


def _joined(_ctx: click.Context, _param: click.Parameter, pairs: tuple[str, ...]) -> str | None:
    """The pairs as the environment has them, None where the flag is absent."""
    return ",".join(pairs) if pairs else None


def _short_flag(flag: str) -> tuple[str, ...]:
    """The flag without its unit, where everybody expects seconds."""
    return (flag.removesuffix("-seconds"),) if flag.endswith("-timeout-seconds") else ()


def _metavar(key: Key) -> str:
    if key.is_address:
        return "ADDRESS"
    if key.expected.startswith(("a number", "a whole number")):
        return "NUMBER"
    if key.expected.startswith("one of "):
        return "|".join(key.expected.removeprefix("one of ").split(", "))
    return "LIST" if key.expected == "a list" else "TEXT"
