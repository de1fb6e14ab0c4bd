"""The few Java archives that pyspark lacks: fetched through Spark's own Ivy, checked against `artifacts.lock`, cached.

Here belong the sets of jars and their cache; what is done with the jars belongs to the caller. Standard library only.
`python -m streaming.artifacts` fetches all that Kontrast needs; with `--relock` it writes `artifacts.lock` anew, which
is needed after a change of REQUESTS: read the difference before you commit it.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from xml.sax.saxutils import quoteattr

from streaming.errors import StreamError
from streaming.java import find_java
from transport.disk import make_private
from transport.scratch import scratch_directory

LOCK_FILE = Path(__file__).with_name("artifacts.lock")
_FETCH_SECONDS = 600
_ATTEMPTS = 2


class ArtifactError(StreamError):
    """Jars that could not be had; the sentence says which, why and what to do."""


class ArtifactSet(Enum):
    """What a caller can ask for; the value is the set's folder in the cache and in the lock file."""

    KAFKA_BROKER = "kafka-broker"  # a broker's whole class path, but for Scala and logging, which pyspark has
    SPARK_KAFKA_CONNECTOR = "spark-kafka-connector"  # what `--jars` needs for Spark's `kafka` source and sink
    LOCAL_FILE_SYSTEM = "local-file-system"  # Hadoop's local file system without a process for each permission
    KAFKA_BROKER_0_10_2 = "kafka-broker-0.10.2"  # from here on: an older release with its own Scala, without logging
    KAFKA_BROKER_0_11_0 = "kafka-broker-0.11.0"
    KAFKA_BROKER_1_0 = "kafka-broker-1.0"
    KAFKA_BROKER_1_1 = "kafka-broker-1.1"
    KAFKA_BROKER_2_0 = "kafka-broker-2.0"
    KAFKA_BROKER_2_2 = "kafka-broker-2.2"
    KAFKA_BROKER_2_3 = "kafka-broker-2.3"
    KAFKA_BROKER_2_4 = "kafka-broker-2.4"
    KAFKA_BROKER_2_6 = "kafka-broker-2.6"
    KAFKA_BROKER_2_7 = "kafka-broker-2.7"
    KAFKA_BROKER_2_8 = "kafka-broker-2.8"
    KAFKA_BROKER_3_0 = "kafka-broker-3.0"
    KAFKA_BROKER_3_2 = "kafka-broker-3.2"
    KAFKA_BROKER_3_5 = "kafka-broker-3.5"
    JMX_EXPORTER = "jmx-exporter"  # a Java agent that serves a broker's gauges over HTTP
    ZOOKEEPER_3_4 = "zookeeper-3.4"  # servers from before persistent watches, with all that they need
    ZOOKEEPER_3_5 = "zookeeper-3.5"
    ZOOKEEPER_3_8 = "zookeeper-3.8"  # one that sends no zxid with an event


_OLDER_BROKERS: Mapping[ArtifactSet, str] = {
    ArtifactSet.KAFKA_BROKER_0_10_2: "org.apache.kafka:kafka_2.12:0.10.2.2",
    ArtifactSet.KAFKA_BROKER_0_11_0: "org.apache.kafka:kafka_2.12:0.11.0.3",
    ArtifactSet.KAFKA_BROKER_1_0: "org.apache.kafka:kafka_2.12:1.0.2",
    ArtifactSet.KAFKA_BROKER_1_1: "org.apache.kafka:kafka_2.12:1.1.1",
    ArtifactSet.KAFKA_BROKER_2_0: "org.apache.kafka:kafka_2.12:2.0.1",
    ArtifactSet.KAFKA_BROKER_2_2: "org.apache.kafka:kafka_2.12:2.2.2",
    ArtifactSet.KAFKA_BROKER_2_3: "org.apache.kafka:kafka_2.12:2.3.1",
    ArtifactSet.KAFKA_BROKER_2_4: "org.apache.kafka:kafka_2.13:2.4.1",
    ArtifactSet.KAFKA_BROKER_2_6: "org.apache.kafka:kafka_2.13:2.6.3",
    ArtifactSet.KAFKA_BROKER_2_7: "org.apache.kafka:kafka_2.13:2.7.2",
    ArtifactSet.KAFKA_BROKER_2_8: "org.apache.kafka:kafka_2.13:2.8.2",
    ArtifactSet.KAFKA_BROKER_3_0: "org.apache.kafka:kafka_2.13:3.0.2",
    ArtifactSet.KAFKA_BROKER_3_2: "org.apache.kafka:kafka_2.13:3.2.3",
    ArtifactSet.KAFKA_BROKER_3_5: "org.apache.kafka:kafka_2.13:3.5.2",
}
_OLDER_ZOOKEEPERS: Mapping[ArtifactSet, tuple[str, ...]] = {
    ArtifactSet.ZOOKEEPER_3_4: ("org.apache.zookeeper:zookeeper:3.4.14",),
    ArtifactSet.ZOOKEEPER_3_5: ("org.apache.zookeeper:zookeeper:3.5.10",),
    ArtifactSet.ZOOKEEPER_3_8: (
        "org.apache.zookeeper:zookeeper:3.8.4",
        "io.dropwizard.metrics:metrics-core:4.1.12.1",
        "org.xerial.snappy:snappy-java:1.1.10.5",
    ),
}
# Fetched by those who ask for them only: tests and their recorder.
ON_DEMAND = frozenset({*_OLDER_BROKERS, *_OLDER_ZOOKEEPERS, ArtifactSet.JMX_EXPORTER})
# Before 1.0 they use what left Java with version 11.
_BEFORE_JAVA_11 = (ArtifactSet.KAFKA_BROKER_0_10_2, ArtifactSet.KAFKA_BROKER_0_11_0)
_LEFT_JAVA = "javax.xml.bind:jaxb-api:2.3.1"


@dataclass(frozen=True, slots=True)
class MavenRequest:
    """One resolution: these packages with all that they depend on, less the excluded.

    Spark's Ivy leaves out what Spark has, Scala's library among it; Ivy alone (`with_scala`) brings it in the version
    that is depended on. It takes one package, and excludes nothing.
    """

    packages: tuple[str, ...]
    excluded: tuple[str, ...] = ()
    with_scala: bool = False


_IN_PYSPARK = (
    "at.yawk.lz4:lz4-java",
    "com.google.code.findbugs:jsr305",
    "org.apache.hadoop:hadoop-client-api",
    "org.apache.hadoop:hadoop-client-runtime",
    "org.apache.spark:spark-tags_2.13",
    "org.scala-lang.modules:scala-parallel-collections_2.13",
    "org.slf4j:slf4j-api",
    "org.xerial.snappy:snappy-java",
)
REQUESTS: Mapping[ArtifactSet, tuple[MavenRequest, ...]] = {
    ArtifactSet.KAFKA_BROKER: (MavenRequest(("org.apache.kafka:kafka_2.13:3.9.2",)),),
    # The connector 4.2.0 names a token provider 4.2.0 that was never published: 4.0.0 does, resolved on its own.
    ArtifactSet.SPARK_KAFKA_CONNECTOR: (
        MavenRequest(
            ("org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",),
            (
                *_IN_PYSPARK,
                "org.apache.commons:commons-pool2",
                "org.apache.spark:spark-token-provider-kafka-0-10_2.13",
            ),
        ),
        MavenRequest(
            ("org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0", "org.apache.commons:commons-pool2:2.12.1"),
            (*_IN_PYSPARK, "org.apache.kafka:kafka-clients"),
        ),
    ),
    ArtifactSet.LOCAL_FILE_SYSTEM: (MavenRequest(("com.globalmentor:hadoop-bare-naked-local-fs:0.1.0",)),),
    ArtifactSet.JMX_EXPORTER: (MavenRequest(("io.prometheus.jmx:jmx_prometheus_javaagent:1.0.1",)),),
    **{
        broker: tuple(
            MavenRequest((each,), with_scala=True)
            for each in (package, *((_LEFT_JAVA,) if broker in _BEFORE_JAVA_11 else ()))
        )
        for broker, package in _OLDER_BROKERS.items()
    },
    **{server: (MavenRequest(packages),) for server, packages in _OLDER_ZOOKEEPERS.items()},
}

Lock = Mapping[ArtifactSet, Mapping[str, str]]  # file name → sha256


def jars(artifact_set: ArtifactSet, *, tell: Callable[[str], None] = lambda _: None) -> tuple[Path, ...]:
    """The set's jars, fetched if the cache lacks one or has it damaged; `tell` hears of it; raises ArtifactError."""
    expected = read_lock()[artifact_set]
    directory = cache_directory() / artifact_set.value
    if _unusable(directory, expected):
        with _only_one_at_a_time(directory):
            if missing := _unusable(directory, expected):  # nobody else fetched them meanwhile
                tell(f"fetching {len(missing)} of {len(expected)} jars for {artifact_set.value}")
                _fill(directory, artifact_set, expected)
    return tuple(directory / name for name in sorted(expected))


def cache_directory() -> Path:
    """`$KONTRAST_CACHE`, else `$XDG_CACHE_HOME/kontrast`, else `~/.cache/kontrast`."""
    own = os.environ.get("KONTRAST_CACHE")
    if own:
        return Path(own).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "kontrast"


def read_lock() -> Lock:
    """The lock file, lines of `SHA256  SET/FILE` as `sha256sum --check` reads them; raises ArtifactError."""
    lock: dict[ArtifactSet, dict[str, str]] = {artifact_set: {} for artifact_set in ArtifactSet}
    for number, line in enumerate(LOCK_FILE.read_text().splitlines(), 1):
        try:
            checksum, file = line.split()
            folder, name = file.split("/")
            lock[ArtifactSet(folder)][name] = checksum
        except ValueError as error:
            raise ArtifactError(
                f"{LOCK_FILE}, line {number} is not 'SHA256  SET/FILE': restore the committed file"
            ) from error
    return lock


def relock(tell: Callable[[str], None] = lambda _: None) -> None:
    """Resolve every set anew and write the lock file from what came; raises ArtifactError."""
    lines = []
    for artifact_set in REQUESTS:
        tell(f"resolving {artifact_set.value}")
        with _fetched(cache_directory(), artifact_set) as fetched:
            lines += [f"{_sha256(jar)}  {artifact_set.value}/{jar.name}\n" for jar in fetched]
    LOCK_FILE.write_text("".join(sorted(lines, key=lambda line: line.split()[1])))


def _unusable(directory: Path, expected: Mapping[str, str]) -> list[str]:
    """The expected jars that are missing or damaged; all are read, 40 MB take a tenth of a second."""
    return [name for name, checksum in expected.items() if _sha256(directory / name) != checksum]


def _sha256(path: Path) -> str | None:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return None


def _fill(directory: Path, artifact_set: ArtifactSet, expected: Mapping[str, str]) -> None:
    with _fetched(directory.parent, artifact_set) as fetched:
        found = {jar.name: jar for jar in fetched}
        for name, checksum in expected.items():
            if name not in found:
                raise ArtifactError(f"{name} was not resolved though artifacts.lock has it: run it again, or --relock")
            if _sha256(found[name]) != checksum:
                raise ArtifactError(
                    f"{name} came with a checksum that is not in artifacts.lock: do not use that mirror"
                )
        for name in expected:
            os.replace(found[name], directory / name)


@contextlib.contextmanager
def _only_one_at_a_time(directory: Path) -> Iterator[None]:
    try:
        make_private(directory)
        lock = (directory / ".lock").open("w")
    except OSError as error:
        raise ArtifactError(f"the cache {directory} cannot be written ({error}): set KONTRAST_CACHE") from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _fetched(parent: Path, artifact_set: ArtifactSet) -> Iterator[list[Path]]:
    """The set's jars in a directory of their own, on the cache's file system, that ends with the block."""
    make_private(parent)
    with scratch_directory(parent) as scratch:
        fetched: list[Path] = []
        for number, request in enumerate(REQUESTS[artifact_set]):
            fetched += _resolve(request, scratch.directory / str(number))
        yield fetched


def _resolve(request: MavenRequest, directory: Path) -> list[Path]:
    # An empty home: a half-filled local Maven repository would otherwise be taken for a complete one.
    home = directory / "home"
    home.mkdir(parents=True)
    command = _of_ivy_alone(request, directory, home) if request.with_scala else _of_spark(request, directory, home)
    for attempt in range(1, _ATTEMPTS + 1):
        status, output = _run(command)
        if status == 0:
            return sorted((directory / "jars").glob("*.jar"))
        if attempt == _ATTEMPTS:
            raise ArtifactError(
                f"{', '.join(request.packages)} could not be fetched ({_reason(output)}): Maven Central must be "
                "reachable once; for a mirror set DEFAULT_ARTIFACT_REPOSITORY to its address"
            )
    raise AssertionError("unreachable: the last attempt returns or raises")


def _of_spark(request: MavenRequest, directory: Path, home: Path) -> list[str]:
    program = directory / "nothing.py"
    program.write_text("")
    return [
        *(str(_spark_home() / "bin" / "spark-submit"), "--master", "local[1]"),
        *("--conf", f"spark.jars.ivy={directory}"),
        *("--driver-java-options", f'-Duser.home="{home}"'),
        *("--packages", ",".join(request.packages)),
        *(("--exclude-packages", ",".join(request.excluded)) if request.excluded else ()),
        str(program),
    ]


def _of_ivy_alone(request: MavenRequest, directory: Path, home: Path) -> list[str]:
    (ivy,) = (_spark_home() / "jars").glob("ivy-*.jar")
    settings = directory / "ivysettings.xml"
    root = os.environ.get("DEFAULT_ARTIFACT_REPOSITORY") or "https://repo1.maven.org/maven2/"
    settings.write_text(
        '<ivysettings><settings defaultResolver="central"/><resolvers>'
        f'<ibiblio name="central" m2compatible="true" root={quoteattr(root)}/></resolvers></ivysettings>'
    )
    (package,) = request.packages
    jar_names = f"{directory}/jars/[organisation]_[artifact]-[revision](-[classifier]).[ext]"
    return [
        *(str(find_java()), f"-Duser.home={home}", "-jar", str(ivy), "-settings", str(settings)),
        *("-cache", str(directory / "cache"), "-dependency", *package.split(":"), "-confs", "default"),
        *("-types", "jar", "bundle", "-retrieve", jar_names),
    ]


def _run(command: Sequence[str]) -> tuple[int, str]:
    find_java()  # spark-submit looks in the same places, but fails with less of a sentence
    environment = {
        **os.environ,
        "SPARK_HOME": str(_spark_home()),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=_FETCH_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return 1, f"no answer in {_FETCH_SECONDS} seconds"
    except OSError as error:
        return 1, str(error)
    return done.returncode, done.stdout + done.stderr


def _spark_home() -> Path:
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise ArtifactError("pyspark is not installed in this environment: run make install")
    return Path(found.origin).parent


def _reason(output: str) -> str:
    """The line that says most about a failed resolution."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    telling = [line for line in lines if "not found" in line or "Exception" in line or "rror" in line]
    return (telling or lines or ["no output"])[0]


def main(arguments: Sequence[str] | None = None) -> int:
    """Fetch every set that Kontrast needs (or `--relock`), saying what is done; 1 after an error's sentence."""
    parser = argparse.ArgumentParser(prog="python -m streaming.artifacts", description=main.__doc__)
    parser.add_argument("--relock", action="store_true", help="resolve anew and write artifacts.lock")
    parser.add_argument("--quiet", action="store_true", help="say nothing of what is in the cache already")
    options = parser.parse_args(arguments)
    try:
        if options.relock:
            relock(_say)
        for artifact_set in ArtifactSet:
            if artifact_set in ON_DEMAND:
                continue
            count = len(jars(artifact_set, tell=_say))
            if not options.quiet:
                _say(f"{count} jars for {artifact_set.value} are in {cache_directory()}")
    except StreamError as error:
        _say(f"error: {error}")
        return 1
    return 0


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
