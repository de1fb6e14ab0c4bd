"""The job in the cluster mode of spark-submit on a real YARN, where its driver runs in a container."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from httpx import HTTPError, get

from cli.embedded.process import ChildProcess, free_port
from streaming.java.artifacts import spark_home
from tests.deploy.hadoop import hadoop_command, running, write_settings
from tests.processes import command_line_of, descendants
from tests.streaming.cluster_records import Streams, life_of
from tests.streaming.standalone_cluster import DEFECT, Submitted, environment
from tests.waiting import eventually
from transport.journal_reading import end_offset

pytestmark = [pytest.mark.deploy, pytest.mark.xdist_group("spark-submit")]

_DEADLINE_SECONDS = 240
_SERVERS = "org.apache.hadoop.yarn.server"
_SETTINGS = {
    "yarn.resourcemanager.scheduler.class": f"{_SERVERS}.resourcemanager.scheduler.fifo.FifoScheduler",
    "yarn.scheduler.minimum-allocation-mb": "256",
    "yarn.nodemanager.resource.memory-mb": "8192",
    "yarn.nodemanager.pmem-check-enabled": "false",
    "yarn.nodemanager.vmem-check-enabled": "false",
    "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "99",
    "yarn.nodemanager.delete.debug-delay-sec": "600",  # the end of a container's log is read after it
}
_OF_RESOURCE_MANAGER = ("address", "scheduler.address", "resource-tracker.address", "admin.address", "webapp.address")
_OF_NODE_MANAGER = ("address", "localizer.address", "webapp.address")


class _Yarn:
    """A resource manager with a node manager, and the settings that reach them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.settings = directory / "hadoop"
        self.settings.mkdir()
        addresses = {
            f"yarn.{role}.{address}": f"localhost:{free_port()}"
            for role, all_of in (("resourcemanager", _OF_RESOURCE_MANAGER), ("nodemanager", _OF_NODE_MANAGER))
            for address in all_of
        }
        places = {f"yarn.nodemanager.{kind}-dirs": str(directory / kind) for kind in ("local", "log")}
        settings = {**_SETTINGS, **addresses, **places, "hadoop.tmp.dir": str(directory / "temporary")}
        write_settings(self.settings / "yarn-site.xml", settings)
        command = [*hadoop_command(self.settings), f"-Dhadoop.log.dir={directory}"]
        self._servers = [
            ChildProcess(server, [*command, f"{_SERVERS}.{server}"], directory / f"{server}.log")
            for server in ("resourcemanager.ResourceManager", "nodemanager.NodeManager")
        ]
        self._metrics = f"http://{addresses['yarn.resourcemanager.webapp.address']}/ws/v1/cluster/metrics"

    @contextlib.contextmanager
    def running(self) -> Iterator[_Yarn]:
        """Run its servers until the end of the `with`."""
        with running(*self._servers, until=self._has_its_node):
            yield self

    def _has_its_node(self) -> bool:
        with contextlib.suppress(HTTPError):
            return bool(get(self._metrics).json()["clusterMetrics"]["activeNodes"])
        return False

    def drivers(self) -> list[int]:
        """Return the Java processes of running drivers."""
        below = descendants(self._servers[-1].pid or 0)
        return [pid for pid in below if "ApplicationMaster" in command_line_of(pid).partition(" -c ")[0]]

    def said(self) -> str:
        """Return the output of all containers."""
        return "\n".join(path.read_text(errors="replace") for path in sorted(self.directory.glob("log/*/*/std*")))


@pytest.fixture
def yarn(java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[_Yarn]:
    directory = tmp_path / "yarn"
    directory.mkdir()
    with _Yarn(directory).running() as yarn:
        monkeypatch.setenv("HADOOP_CONF_DIR", str(yarn.settings))
        yield yarn


def _submit(submitted: Submitted, yarn: _Yarn, *options: str) -> subprocess.Popen[bytes]:
    python = environment(yarn.directory)["PYSPARK_PYTHON"]
    names = {"PYSPARK_PYTHON": python, "SPARK_HOME": str(spark_home())}
    of_processes = ("yarn.appMasterEnv", "executorEnv")
    conf = (
        "spark.submit.deployMode=cluster",
        f"spark.yarn.jars=local:{spark_home()}/jars/*",
        f"spark.yarn.stagingDir={yarn.directory}/staging",
        "spark.executor.instances=1",
        "spark.driver.memory=512m",
        *(f"spark.{of}.{name}={value}" for of in of_processes for name, value in names.items()),
    )
    return submitted.start("yarn", *options, conf=conf)


def test_a_driver_that_is_killed_starts_again_in_another_container(yarn, tmp_path):
    streams = Streams(tmp_path)
    life = life_of("east", topics=20, losses=4)
    streams.append(life.lines)
    job = _submit(Submitted(tmp_path, streams), yarn, "--max-batch-bytes=4096", "--available-now")
    eventually(lambda: end_offset(streams.outputs / "metadata") > 0 or job.poll() is not None)
    (driver,) = yarn.drivers()
    os.kill(driver, signal.SIGKILL)
    assert len(streams.read("metadata")) < len(life.rows()["metadata"]), "all of it was in the middle"
    assert job.wait(_DEADLINE_SECONDS) == 0, yarn.said()[-4000:]
    assert streams.read_all() == life.rows()


def test_a_job_that_fails_never_ends_as_success(yarn, tmp_path):
    streams = Streams(tmp_path)
    submitted = Submitted(tmp_path, streams)
    streams.append(life_of("east", topics=4).lines)
    job = _submit(submitted, yarn, "--available-now", "--no-such-option")
    assert job.wait(_DEADLINE_SECONDS) == 1
    assert re.search(r"User application exited with (status )?2\b", submitted.log.read_text())
    assert "No such option '--no-such-option'" in yarn.said()

    submitted.program.write_text(DEFECT + submitted.program.read_text())
    assert _submit(submitted, yarn, "--available-now").wait(_DEADLINE_SECONDS) == 1
    assert re.search(r"User application exited with (status )?1\b", submitted.log.read_text())
    assert "failed unexpectedly" in yarn.said()
