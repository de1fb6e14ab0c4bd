"""Fetch the Java archives that pyspark lacks through Spark's Ivy, check them against a lock file, and cache them.

Standard library only. `python -m streaming.java.artifacts` fetches everything that Kontrast needs. After a change of a
request, `python -m lab.release.licences` pins the jars again.
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
from pathlib import Path

from streaming.errors import StreamError
from streaming.java.installation import find_java
from streaming.scratch import scratch_directory

LOCK_FILE = Path(__file__).with_name("artifacts.lock")
SHORT_LIFE = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")  # compile quickly rather than well
# Spark in one process needs no other address. By default Spark asks for this host's name, which may not resolve.
LOOPBACK = "127.0.0.1"
_FETCH_SECONDS = 600
_ATTEMPTS = 2


class ArtifactError(StreamError):
    """Jars are unavailable. The sentence names them, the reason and the next step."""


@dataclass(frozen=True, slots=True)
class SparkRequest:
    """Packages by Spark's Ivy, without the excluded packages and Spark's own, such as Scala's library."""

    packages: tuple[str, ...]
    excluded: tuple[str, ...] = ()

    def command(self, directory: Path, home: Path) -> list[str]:
        """Return a command that puts the jars into the folder `jars` of this directory. `home` is its empty home."""
        program = directory / "nothing.py"
        program.write_text("")
        return [
            *(str(spark_home() / "bin" / "spark-submit"), "--master", "local[1]"),
            *("--conf", f"spark.jars.ivy={directory}"),
            *("--driver-java-options", f'{" ".join(SHORT_LIFE)} -Duser.home="{home}"'),
            *("--packages", ",".join(self.packages)),
            *(("--exclude-packages", ",".join(self.excluded)) if self.excluded else ()),
            str(program),
        ]


@dataclass(frozen=True, slots=True)
class ArtifactSet:
    """Jars for one purpose, with their folder in cache and lock file, and their resolution."""

    name: str
    requests: tuple[SparkRequest, ...]


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
# A broker's whole class path, but for Scala and logging, which pyspark has.
KAFKA_BROKER = ArtifactSet("kafka-broker", (SparkRequest(("org.apache.kafka:kafka_2.13:3.9.2",)),))
# The jars that Spark's `kafka` source and sink need for `--jars`. Connector 4.2.0 names a token provider 4.2.0 that was
# never published. Version 4.0.0 works, resolved on its own.
SPARK_KAFKA_CONNECTOR = ArtifactSet(
    "spark-kafka-connector",
    (
        SparkRequest(
            ("org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",),
            (
                *_IN_PYSPARK,
                "org.apache.commons:commons-pool2",
                "org.apache.spark:spark-token-provider-kafka-0-10_2.13",
            ),
        ),
        SparkRequest(
            ("org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0", "org.apache.commons:commons-pool2:2.12.1"),
            (*_IN_PYSPARK, "org.apache.kafka:kafka-clients"),
        ),
    ),
)
# Hadoop's local file system without a process for each permission.
LOCAL_FILE_SYSTEM = ArtifactSet(
    "local-file-system", (SparkRequest(("com.globalmentor:hadoop-bare-naked-local-fs:0.1.0",)),)
)
SETS = (KAFKA_BROKER, SPARK_KAFKA_CONNECTOR, LOCAL_FILE_SYSTEM)

Lock = Mapping[str, Mapping[str, str]]  # set → file name → sha256


def jars(
    artifact_set: ArtifactSet, *, lock_file: Path | None = None, report: Callable[[str], None] = lambda _: None
) -> tuple[Path, ...]:
    """Return the set's jars. If a jar in the cache is missing or damaged, call `report` and fetch the set.

    Raise ArtifactError.
    """
    expected = read_lock(lock_file or LOCK_FILE).get(artifact_set.name, {})
    directory = cache_directory() / artifact_set.name
    if missing_jars(artifact_set, lock_file=lock_file):
        with _only_one_at_a_time(directory):
            if missing := missing_jars(artifact_set, lock_file=lock_file):  # no other process fetched them meanwhile
                report(f"fetching {len(missing)} of {len(expected)} jars for {artifact_set.name}")
                _fill(directory, artifact_set, expected)
    return tuple(directory / name for name in sorted(expected))


def missing_jars(artifact_set: ArtifactSet, *, lock_file: Path | None = None) -> list[str]:
    """Return the set's jars that the cache lacks or has damaged. Reading all 40 MB takes a tenth of a second.

    Raise ArtifactError if this user may not read the cache.
    """
    directory = cache_directory() / artifact_set.name
    expected = read_lock(lock_file or LOCK_FILE).get(artifact_set.name, {})
    try:
        return [name for name, checksum in expected.items() if sha256(directory / name) != checksum]
    except PermissionError as error:
        raise ArtifactError(
            f"user {os.geteuid()} may not read {error.filename}: run `chmod -R a+rX {directory.parent}` as its owner, "
            "or set KONTRAST_CACHE"
        ) from error


def cache_directory() -> Path:
    """Return `$KONTRAST_CACHE`, else `$XDG_CACHE_HOME/kontrast`, else `~/.cache/kontrast`."""
    own = os.environ.get("KONTRAST_CACHE")
    if own:
        return Path(own).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "kontrast"


def read_lock(lock_file: Path) -> Lock:
    """Read the lock file, lines of `SHA256  SET/FILE` as for `sha256sum --check`. Raise ArtifactError."""
    lock: dict[str, dict[str, str]] = {}
    for number, line in enumerate(lock_file.read_text().splitlines(), 1):
        try:
            checksum, file = line.split()
            folder, name = file.split("/")
        except ValueError as error:
            raise ArtifactError(
                f"{lock_file}, line {number} is not 'SHA256  SET/FILE'. Restore the committed file"
            ) from error
        lock.setdefault(folder, {})[name] = checksum
    return lock


def sha256(path: Path) -> str | None:
    """Return the file's checksum, None without a file."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return None


def _fill(directory: Path, artifact_set: ArtifactSet, expected: Mapping[str, str]) -> None:
    with fetched(directory.parent, artifact_set) as resolved:
        found = {jar.name: jar for jar in resolved}
        for name, checksum in expected.items():
            if name not in found:
                raise ArtifactError(f"{name} was not resolved though artifacts.lock has it. Run it again")
            if sha256(found[name]) != checksum:
                raise ArtifactError(
                    f"{name} came with a checksum that is not in artifacts.lock. Do not use that mirror"
                )
        for name in expected:
            os.replace(found[name], directory / name)


@contextlib.contextmanager
def _only_one_at_a_time(directory: Path) -> Iterator[None]:
    try:
        directory.mkdir(parents=True, exist_ok=True)  # an image is built by root, and another user reads it
        lock = (directory / ".lock").open("w")
    except OSError as error:
        raise ArtifactError(f"the cache {directory} cannot be written ({error}): set KONTRAST_CACHE") from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def fetched(parent: Path, artifact_set: ArtifactSet) -> Iterator[list[Path]]:
    """Provide the set's jars in a temporary directory on the cache's file system, until the block ends."""
    parent.mkdir(parents=True, exist_ok=True)
    with scratch_directory(parent) as scratch:
        resolved: list[Path] = []
        for number, request in enumerate(artifact_set.requests):
            resolved += _resolve(request, scratch.directory / str(number))
        yield resolved


def _resolve(request: SparkRequest, directory: Path) -> list[Path]:
    # An empty home, because Ivy would take a half-filled local Maven repository for a complete one.
    home = directory / "home"
    home.mkdir(parents=True)
    command = request.command(directory, home)
    for attempt in range(1, _ATTEMPTS + 1):
        status, output = _run(command)
        if status == 0:
            return sorted((directory / "jars").glob("*.jar"))
        if attempt == _ATTEMPTS:
            raise ArtifactError(
                f"{', '.join(request.packages)} could not be fetched ({_reason(output)}). Maven Central must be "
                "reachable once. For a mirror set DEFAULT_ARTIFACT_REPOSITORY to its address"
            )
    raise AssertionError("unreachable, because the last attempt returns or raises")


def _run(command: Sequence[str]) -> tuple[int, str]:
    find_java()  # spark-submit looks in the same places, but its own error is less clear
    environment = {
        **os.environ,
        "SPARK_HOME": str(spark_home()),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": LOOPBACK,
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


def spark_home() -> Path:
    """Return the directory of the installed pyspark. Raise ArtifactError."""
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise ArtifactError("pyspark is not installed in this environment. Run make install")
    return Path(found.origin).parent


def _reason(output: str) -> str:
    """Return the most informative line of a failed resolution, which asks a second repository in vain."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if "not found" in line or "Exception" in line or "rror" in line]
    return min(errors or lines or ["no output"], key=lambda line: ("PKIX" not in line, "spark-packages" in line))


def main(arguments: Sequence[str] | None = None) -> int:
    """Fetch every required set with messages. Return 1 after an error's sentence."""
    parser = argparse.ArgumentParser(prog="python -m streaming.java.artifacts", description=main.__doc__)
    parser.add_argument("--quiet", action="store_true", help="report no jars that are in the cache already")
    options = parser.parse_args(arguments)
    try:
        for artifact_set in SETS:
            count = len(jars(artifact_set, report=say))
            if not options.quiet:
                say(f"{count} jars for {artifact_set.name} are in {cache_directory()}")
    except StreamError as error:
        say(f"error: {error}")
        return 1
    return 0


def say(line: str) -> None:
    """Print a line to standard error."""
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
