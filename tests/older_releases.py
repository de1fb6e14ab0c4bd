"""Fetch the jars of other releases, which tests and their recorder run: `python -m tests.older_releases`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from cli.embedded.kafka import kafka_class_path
from lab.release.licences import relock
from streaming.java.artifacts import KAFKA_BROKER, SHORT_LIFE, ArtifactSet, SparkRequest, jars, spark_home
from streaming.java.installation import find_java

LOCK_FILE = Path(__file__).with_name("older_releases.lock")


@dataclass(frozen=True, slots=True)
class IvyRequest(SparkRequest):
    """One package by Ivy alone, so that Scala's library comes in the version that the package needs."""

    with_dependencies: bool = True

    def command(self, directory: Path, home: Path) -> list[str]:
        """Return the command of Ivy from Spark's jars, with Maven Central or its mirror as the only repository."""
        (ivy,) = (spark_home() / "jars").glob("ivy-*.jar")
        settings = directory / "ivysettings.xml"
        root = os.environ.get("DEFAULT_ARTIFACT_REPOSITORY") or "https://repo1.maven.org/maven2/"
        settings.write_text(
            '<ivysettings><settings defaultResolver="central"/><resolvers>'
            f'<ibiblio name="central" m2compatible="true" root={quoteattr(root)}/></resolvers></ivysettings>'
        )
        jar_names = f"{directory}/jars/[organisation]_[artifact]-[revision](-[classifier]).[ext]"
        return [
            *(str(find_java()), *SHORT_LIFE, f"-Duser.home={home}", "-jar", str(ivy), "-settings", str(settings)),
            *("-cache", str(directory / "cache"), "-dependency", *self.packages[0].split(":"), "-confs", "default"),
            *(() if self.with_dependencies else ("-notransitive",)),
            *("-types", "jar", "bundle", "-retrieve", jar_names),
        ]


_LEFT_JAVA = IvyRequest(("javax.xml.bind:jaxb-api:2.3.1",))  # Java 11 has no JAXB, which brokers before 1.0 use


_WITH_SCALA_2_12 = ("0.10.2.2", "0.11.0.3", "1.0.2", "1.1.1", "2.0.1", "2.2.2", "2.3.1")
_WITH_SCALA_2_13 = ("2.4.1", "2.6.3", "2.7.2", "2.8.2", "3.0.2", "3.2.3", "3.5.2")

# Up to 3.5.7, ZooKeeper's client parses a server's name in a way that throws from Java 14 on.
_WITH_OLD_ZOOKEEPER_CLIENT = frozenset({"0.10.2.2", "0.11.0.3", "1.0.2", "1.1.1", "2.0.1", "2.2.2", "2.3.1", "2.4.1"})


def _broker(release: str, scala: str) -> ArtifactSet:
    more = (_LEFT_JAVA,) if release.startswith("0.") else ()
    package = IvyRequest((f"org.apache.kafka:kafka_{scala}:{release}",))
    return ArtifactSet(f"kafka-broker-{release.rpartition('.')[0]}", (package, *more))


# Jars of brokers with their own Scala, but without logging.
KAFKA_BROKERS: Mapping[str, ArtifactSet] = {
    **{release: _broker(release, "2.12") for release in _WITH_SCALA_2_12},
    **{release: _broker(release, "2.13") for release in _WITH_SCALA_2_13},
}
# The command line tools that left the broker's jar with 3.5. A broker of the release has their dependencies.
KAFKA_TOOLS = ArtifactSet(
    "kafka-tools", (IvyRequest(("org.apache.kafka:kafka-tools:3.9.2",), with_dependencies=False),)
)
# A Java agent that serves a broker's gauges over HTTP.
JMX_EXPORTER = ArtifactSet("jmx-exporter", (SparkRequest(("io.prometheus.jmx:jmx_prometheus_javaagent:1.0.1",)),))
# Servers from before persistent watches, with all their dependencies. 3.8 sends no zxid with an event, and has an
# AdminServer.
ZOOKEEPER_3_4 = ArtifactSet("zookeeper-3.4", (SparkRequest(("org.apache.zookeeper:zookeeper:3.4.14",)),))
ZOOKEEPER_3_5 = ArtifactSet("zookeeper-3.5", (SparkRequest(("org.apache.zookeeper:zookeeper:3.5.10",)),))
ZOOKEEPER_3_8 = ArtifactSet(
    "zookeeper-3.8",
    (
        SparkRequest(
            (
                "org.apache.zookeeper:zookeeper:3.8.4",
                "io.dropwizard.metrics:metrics-core:4.1.12.1",
                "org.xerial.snappy:snappy-java:1.1.10.5",
                "org.eclipse.jetty:jetty-servlet:9.4.53.v20231009",
                "com.fasterxml.jackson.core:jackson-databind:2.15.2",
            )
        ),
    ),
)
# HDFS and YARN of Spark's Hadoop release, which need Spark's jars. Its client of S3 has the parts of Amazon's SDK that
# it uses, since the whole SDK has 600 MB.
HADOOP_MINICLUSTER = ArtifactSet(
    "hadoop-minicluster",
    (
        IvyRequest(("org.apache.hadoop:hadoop-client-minicluster:3.5.0",), with_dependencies=False),
        IvyRequest(("org.junit.jupiter:junit-jupiter-api:5.10.2",)),
        IvyRequest(("org.bouncycastle:bcpkix-jdk18on:1.78.1",)),
    ),
)
HADOOP_AWS = ArtifactSet(
    "hadoop-aws",
    (
        SparkRequest(
            (
                "org.apache.hadoop:hadoop-aws:3.5.0",
                *(f"software.amazon.awssdk:{module}:2.35.4" for module in ("s3", "s3-transfer-manager", "sts")),
            ),
            ("software.amazon.awssdk:bundle",),
        ),
    ),
)
SETS = (
    *(*KAFKA_BROKERS.values(), KAFKA_TOOLS, JMX_EXPORTER, ZOOKEEPER_3_4, ZOOKEEPER_3_5, ZOOKEEPER_3_8),
    *(HADOOP_MINICLUSTER, HADOOP_AWS),
)


def older_jars(artifact_set: ArtifactSet) -> tuple[Path, ...]:
    """Return the set's jars, fetched if the cache lacks one. Raise ArtifactError."""
    return jars(artifact_set, lock_file=LOCK_FILE)


def class_path_of(release: str) -> list[Path]:
    """Return the class path of a broker of this release.

    ZooKeeper's client of 2.8 comes first if the release's own does not run on Java 17. Raise ArtifactError and
    EmbeddedError.
    """
    newer = older_jars(KAFKA_BROKERS["2.8.2"]) if release in _WITH_OLD_ZOOKEEPER_CLIENT else ()
    own = older_jars(KAFKA_BROKERS[release]) if release in KAFKA_BROKERS else jars(KAFKA_BROKER)
    return [*(jar for jar in newer if jar.name.startswith("org.apache.zookeeper_")), *kafka_class_path(own)]


if __name__ == "__main__":
    sys.exit(relock(SETS, LOCK_FILE))
