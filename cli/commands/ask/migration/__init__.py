"""Check a cluster before and during its migration to KRaft."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import click

from cli.lazy_group import LazyGroup, Section
from cli.printing import standard_error
from cli.settings.config import ConfigError, Layer, Settings, build
from cli.settings.keys import keys_of
from cli.settings.options import settings_options
from cli.settings.parameters import Parsed
from controller.contract.ids import BrokerId
from dashboards.probe.config import KafkaLoginConfig, ProbeConfig
from migration.preflight.tree import Tree
from transport.kafka_login import KafkaLogin, KafkaLoginError, split_address

TIMEOUT_SECONDS: Final = 10.0
_SECTION: Final = "serve.probe"
_NOT_OF_A_LOGIN = keys_of(ProbeConfig).keys() - keys_of(KafkaLoginConfig).keys() | {"kafka_quorum"}


def _read_addresses(text: str) -> tuple[str, ...]:
    addresses = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not addresses:
        raise ValueError("it names no node. Write HOST:PORT[,HOST:PORT...]")
    for address in addresses:
        split_address(address)
    return addresses


def bootstrap_option(help_text: str, *, required: bool) -> Callable[[Any], Any]:
    """Return a decorator that gives a command `--bootstrap` and the options of the login."""
    addresses = Parsed("HOST:PORT[,HOST:PORT...]", _read_addresses)
    option = click.option("--bootstrap", type=addresses, required=required, metavar=addresses.name, help=help_text)

    def decorate(command: Any) -> Any:  # noqa: ANN401 (click's own)
        return option(settings_options(_SECTION, leave_out=_NOT_OF_A_LOGIN)(command))

    return decorate


def read_login(settings: Settings, cluster: str | None, given: Layer) -> KafkaLoginConfig:
    """Return the login to the nodes of the named cluster, or of the only configured one. Raise ConfigError."""
    name = cluster or (next(iter(settings.clusters)) if len(settings.clusters) == 1 else "")
    layers = settings.sections[_SECTION], settings.clusters.get(name, {}), given
    config = build(KafkaLoginConfig, _SECTION, *layers, subject=f"cluster {name}" if name else "")
    node_login(config)
    return config


def node_login(config: KafkaLoginConfig) -> KafkaLogin:
    """Return the login, if its password can be read. Raise ConfigError."""
    try:
        login = config.node_login()
        _ = login.password  # read here, so that the command refuses before it connects
    except KafkaLoginError as error:
        raise ConfigError(str(error)) from error
    return login


def registered_addresses(tree: Tree, config: KafkaLoginConfig) -> dict[BrokerId, str]:
    """Return each registered broker's address. Warn of a broker without a fitting listener, and leave it out."""
    from dashboards.probe.broker import ProbeError, choose_endpoint  # not for --help

    addresses = {}
    for broker, znode in tree.brokers.items():
        try:
            addresses[broker] = str(choose_endpoint(znode.addresses(), config))
        except ProbeError as error:
            standard_error.warn(f"broker {broker} is not asked: {error}")
    return addresses


@click.group(cls=LazyGroup, sections={"Commands": Section(__name__)}, no_args_is_help=False)
def migration() -> None:
    """Check a cluster before and during its migration to KRaft.

    These commands write nothing.
    """
