from __future__ import annotations

import hashlib
import zipfile
from concurrent.futures import ThreadPoolExecutor

import pytest

from lab.release.licences import Licensed, read_licences, relock
from streaming.java import artifacts
from streaming.java.artifacts import (
    ArtifactError,
    ArtifactSet,
    SparkRequest,
    _reason,
    cache_directory,
    jars,
    main,
    read_lock,
)
from tests import older_releases
from tests.older_releases import IvyRequest

PACKAGE = "example:first:1.0"
BROKER = ArtifactSet("kafka-broker", (SparkRequest((PACKAGE,)),))
OLDER_BROKER = ArtifactSet("kafka-broker-2.3", (IvyRequest((PACKAGE,)),))
JARS = ["example_first-1.0.jar", "example_second-2.0.jar"]
POM = """<project><modelVersion>4.0.0</modelVersion>
<groupId>example</groupId><artifactId>{name}</artifactId><version>{version}</version>
<licenses><license><name>{licence}</name></license></licenses>
<dependencies>{dependencies}</dependencies></project>"""
NEEDS_SECOND = (
    "<dependency><groupId>example</groupId><artifactId>second</artifactId><version>2.0</version></dependency>"
)
# Spark's Ivy leaves out a jar of this name, whichever group publishes it.
SCALA = "example_scala-library-2.12.8.jar"
NEEDS_SCALA = NEEDS_SECOND.replace("second", "scala-library").replace("2.0", "2.12.8")


@pytest.fixture
def repository(java, tmp_path, monkeypatch):
    """Make a Maven repository in a directory, for Spark's Ivy in place of Maven Central. `first` needs `second`."""
    root = tmp_path / "a repository"
    publish(root, "first", "1.0", NEEDS_SECOND)
    publish(root, "second", "2.0", NEEDS_SCALA)
    publish(root, "scala-library", "2.12.8", "")
    monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", root.as_uri() + "/")
    monkeypatch.setenv("KONTRAST_CACHE", str(tmp_path / "a cache"))
    monkeypatch.setattr(artifacts, "SETS", (BROKER, OLDER_BROKER))
    monkeypatch.setattr(artifacts, "LOCK_FILE", tmp_path / "artifacts.lock")
    published = [("first", "1.0"), ("second", "2.0")]
    lines = [
        f"{sha256(path_of(root, name, version))}  {each.name}/example_{name}-{version}.jar\n"
        for each in (BROKER, OLDER_BROKER)
        for name, version in (published if each is BROKER else [*published, ("scala-library", "2.12.8")])
    ]
    artifacts.LOCK_FILE.write_text("".join(lines))
    return root


def path_of(root, name, version):
    return root / "example" / name / version / f"{name}-{version}.jar"


def publish(root, name, version, dependencies, licence="Apache-2.0"):
    path = path_of(root, name, version)
    path.parent.mkdir(parents=True, exist_ok=True)
    pom = POM.format(name=name, version=version, licence=licence, dependencies=dependencies)
    path.with_suffix(".pom").write_text(pom)
    with zipfile.ZipFile(path, "w") as jar:
        jar.writestr("name", name)


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_set_is_fetched_once_and_then_taken_from_the_cache(repository):
    reported = []
    fetched = jars(BROKER, report=reported.append)
    assert [jar.name for jar in fetched] == JARS
    assert jars(BROKER, report=reported.append) == fetched
    assert reported == ["fetching 2 of 2 jars for kafka-broker"]


def test_an_older_broker_is_fetched_by_ivy_with_all_that_spark_would_leave_out(repository):
    assert [jar.name for jar in jars(OLDER_BROKER)] == sorted([*JARS, SCALA])


@pytest.mark.nightly
def test_a_damaged_or_missing_jar_is_noticed_and_fetched_again(repository):
    first, second = jars(BROKER)
    whole = first.read_bytes()
    first.write_bytes(whole[:-1])
    second.unlink()
    reported = []
    assert jars(BROKER, report=reported.append) == (first, second)
    assert reported == ["fetching 2 of 2 jars for kafka-broker"]
    assert first.read_bytes() == whole


def test_a_jar_that_differs_from_the_lock_is_never_put_into_the_cache(repository):
    path_of(repository, "second", "2.0").write_bytes(b"something else")
    with pytest.raises(ArtifactError, match=r"example_second-2\.0\.jar came with a checksum that is not in"):
        jars(BROKER)
    assert not list(cache_directory().rglob("*.jar"))


@pytest.mark.nightly
def test_callers_at_the_same_time_fetch_once(repository):
    reported = []
    with ThreadPoolExecutor(3) as callers:
        results = set(callers.map(lambda _: jars(BROKER, report=reported.append), range(3)))
    assert len(results) == 1
    assert len(reported) == 1


def test_an_unreachable_repository_is_one_sentence_and_a_failure(repository, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", (tmp_path / "nothing").as_uri() + "/")
    monkeypatch.setattr(artifacts, "_ATTEMPTS", 1)
    assert main([]) == 1
    assert "error: example:first:1.0 could not be fetched" in capsys.readouterr().err


@pytest.mark.nightly
@pytest.mark.parametrize(
    "refused", ["Server access error (javax.net.ssl: PKIX path building failed)", "Error: refused"]
)
def test_the_reason_is_that_of_the_repository_and_not_of_a_second_one(refused):
    lines = [
        "Host repos.spark-packages.org not found. url=https://repos.spark-packages.org",
        "::::",
        refused,
        "Error: 1",
    ]
    assert _reason("\n".join(lines)) == refused


def test_relock_writes_the_lock_file_that_the_fetch_is_checked_against(repository):
    by_hand = read_lock(artifacts.LOCK_FILE)
    artifacts.LOCK_FILE.unlink()
    assert relock(artifacts.SETS, artifacts.LOCK_FILE) == 0
    assert main([]) == 0
    assert read_lock(artifacts.LOCK_FILE) == by_hand
    recorded = read_licences(artifacts.LOCK_FILE.with_suffix(".licences"))
    assert recorded["kafka-broker/example_second-2.0.jar"] == Licensed("example:second:2.0", ("Apache-2.0",))
    assert len(recorded) == 5


@pytest.mark.nightly
def test_relock_rejects_a_jar_under_the_gpl_and_changes_nothing(repository, capsys):
    publish(repository, "second", "2.0", NEEDS_SCALA, licence="GPL-3.0-only")
    before = artifacts.LOCK_FILE.read_bytes()
    assert relock(artifacts.SETS, artifacts.LOCK_FILE) == 1
    assert "error: example_second-2.0.jar is under GPL-3.0-only alone" in capsys.readouterr().err
    assert artifacts.LOCK_FILE.read_bytes() == before


def test_a_damaged_lock_file_is_refused_by_line(repository):
    artifacts.LOCK_FILE.write_text("what is this\n")
    with pytest.raises(ArtifactError, match="line 1 is not 'SHA256  SET/FILE'"):
        jars(BROKER)


def test_the_committed_lock_file_names_every_set_with_the_pinned_versions():
    lock = read_lock(artifacts.LOCK_FILE)
    assert "org.apache.kafka_kafka_2.13-3.9.2.jar" in lock[artifacts.KAFKA_BROKER.name]
    assert sorted(lock[artifacts.SPARK_KAFKA_CONNECTOR.name]) == [
        "org.apache.commons_commons-pool2-2.12.1.jar",
        "org.apache.kafka_kafka-clients-3.9.2.jar",
        "org.apache.spark_spark-sql-kafka-0-10_2.13-4.2.0.jar",
        "org.apache.spark_spark-token-provider-kafka-0-10_2.13-4.0.0.jar",
    ]
    assert set(lock) == {each.name for each in artifacts.SETS}
    assert set(read_lock(older_releases.LOCK_FILE)) == {each.name for each in older_releases.SETS}
