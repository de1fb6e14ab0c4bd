"""A broker that reports its whole work as a controller, with logs at TRACE and gauges over HTTP.

The configuration and life of such a broker belong here. `actions` decides its fate.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from cli.embedded.java import java_command, write_configuration
from cli.embedded.process import ChildProcess, free_port
from tests.older_releases import JMX_EXPORTER, class_path_of, older_jars

# The settings of all recordings. The replica gets `recording.SETTINGS`.
SETTINGS: Mapping[str, str] = {
    "controlled.shutdown.retry.backoff.ms": "1000",
    "delete.topic.enable": "true",
    "leader.imbalance.check.interval.seconds": "20",
    "replica.lag.time.max.ms": "8000",
    "zookeeper.session.timeout.ms": "6000",
}
_SMALL: Mapping[str, str] = {
    "auto.create.topics.enable": "false",
    "background.threads": "2",
    "log.cleaner.enable": "false",
    "num.io.threads": "2",
    "num.network.threads": "2",
    "zookeeper.connection.timeout.ms": "30000",
}
# Without Log4j's shutdown hook, which silences the log at SIGTERM, just when a stopping controller moves its leaders.
_LOGGING = """\
shutdownHook = disable
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%d] %p %m (%c)%n
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
"""
_LOG = """\
appender.{name}.type = File
appender.{name}.name = {name}
appender.{name}.fileName = {file}
appender.{name}.layout.type = PatternLayout
appender.{name}.layout.pattern = [%d] %p %m (%c)%n
logger.{name}.name = {logger}
logger.{name}.level = trace
logger.{name}.additivity = false
logger.{name}.appenderRef.{name}.ref = {name}
"""
_LOGS = {"state-change.log": "state.change.logger", "controller.log": "kafka.controller"}
_GAUGES = r"""
lowercaseOutputName: true
includeObjectNames: ["kafka.controller:type=KafkaController,*", "kafka.server:type=ReplicaManager,*"]
rules:
- {pattern: 'kafka.controller<type=KafkaController, name=(\w+)><>Value', name: "$1"}
- {pattern: 'kafka.server<type=ReplicaManager, name=(\w+)><>Value', name: "rm_$1"}
"""


class RecordedBroker(ChildProcess):
    """A broker with its data in `directory` and its logs in `logs`, which can be started again and again.

    With `clients_apart`, clients hear only of brokers that have a listener for them, not of brokers that never answer.
    """

    def __init__(  # noqa: PLR0913 (three with defaults)
        self,
        broker_id: int,
        kafka: str,
        zookeeper: str,
        directory: Path,
        logs: Path,
        settings: Mapping[str, str] = MappingProxyType({}),
        heap_mb: int = 192,
        clients_apart: bool = False,
    ) -> None:
        self.broker_id = broker_id
        self.port = free_port()
        self.gauges_port = free_port()
        self._logs = logs.absolute()
        self._directory = directory = directory.absolute()
        self._settings = {
            **_SMALL,
            **SETTINGS,
            "broker.id": str(broker_id),
            **(_clients_apart(self.address) if clients_apart else {"listeners": f"PLAINTEXT://{self.address}"}),
            "log.dirs": str(directory / "data"),
            "zookeeper.connect": zookeeper,
            **settings,
        }
        self._heap_mb = heap_mb
        self._configuration = directory / "server.properties"
        super().__init__(f"broker {broker_id}", self._command_of(kafka), directory / "broker.log")
        self._configure()

    @property
    def address(self) -> str:
        """Return HOST:PORT for clients."""
        return f"127.0.0.1:{self.port}"

    def become(self, kafka: str, settings: Mapping[str, str]) -> None:
        """Change the release and settings of the broker, which must have ended, from its next start on."""
        self._command = self._command_of(kafka)
        self._configure(settings)

    def _command_of(self, kafka: str) -> list[str]:
        class_path = class_path_of(kafka)
        command = java_command("kafka.Kafka", self._configuration, class_path=class_path, heap_mb=self._heap_mb)
        (agent,) = older_jars(JMX_EXPORTER)
        command.insert(1, f"-javaagent:{agent}=127.0.0.1:{self.gauges_port}:{self._directory / 'gauges.yml'}")
        return list(map(str, command))

    def _configure(self, more: Mapping[str, str] = MappingProxyType({})) -> None:
        self._logs.mkdir(parents=True, exist_ok=True)
        write_configuration(self._configuration, {**self._settings, **more})
        parts = [
            _LOG.format(name=logger.replace(".", "_"), file=self._logs / file, logger=logger)
            for file, logger in _LOGS.items()
        ]
        (self._directory / "log4j2.properties").write_text(_LOGGING + "".join(parts))
        (self._directory / "gauges.yml").write_text(_GAUGES)


def _clients_apart(address: str) -> Mapping[str, str]:
    return {
        "listeners": f"CLIENT://{address},PLAINTEXT://127.0.0.1:{free_port()}",
        "listener.security.protocol.map": "CLIENT:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
    }
