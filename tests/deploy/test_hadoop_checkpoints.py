"""kill -9 of a job whose checkpoint is on a real HDFS or a real S3 server, which `make check-deploy LONG=1` builds."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from httpx import HTTPError, get

from cli.embedded.process import ChildProcess, free_port
from tests.deploy.hadoop import hadoop_command, running, write_settings
from tests.older_releases import HADOOP_AWS, older_jars
from tests.programs import program
from tests.streaming.cluster_records import Streams, life_of
from tests.streaming.victim import Victim
from transport.journal_reading import end_offset

pytestmark = [pytest.mark.deploy, pytest.mark.timeout(1800), pytest.mark.xdist_group("hadoop-checkpoints")]

_ROOT = Path(__file__).parents[2]
_SEED = int(os.environ.get("KONTRAST_FAULTS_SEED", "20261124"))
_KILLS = int(os.environ.get("KONTRAST_FAULTS_KILLS", "3"))
_KEYS = ("kontrast", "kontrast-secret")


@contextlib.contextmanager
def _hdfs(directory: Path, settings: Path) -> Iterator[str]:
    """Run a name node with a data node, and write their settings. Yield the address of a checkpoint."""
    port = free_port()
    command = [*hadoop_command(), "org.apache.hadoop.test.MiniDFSClusterManager", "-format", "-nnport", str(port)]
    command += ["-writeConfig", str(settings / "core-site.xml"), "-writeDetails", str(directory / "ready")]
    with running(ChildProcess("HDFS", command, directory / "hdfs.log"), until=(directory / "ready").exists):
        yield f"hdfs://localhost:{port}/kontrast/checkpoint"


@contextlib.contextmanager
def _s3(directory: Path, settings: Path) -> Iterator[str]:
    """Run an S3 server with a bucket, and write what reaches it. Yield the address of a checkpoint."""
    (directory / "buckets" / "bucket").mkdir(parents=True)
    for jar in older_jars(HADOOP_AWS):
        (settings / jar.name).symlink_to(jar)
    address = f"127.0.0.1:{free_port()}"
    of_client = {"endpoint": f"http://{address}", "endpoint.region": "us-east-1", "path.style.access": "true"}
    of_client |= {"access.key": _KEYS[0], "secret.key": _KEYS[1]}
    write_settings(settings / "core-site.xml", {f"fs.s3a.{key}": value for key, value in of_client.items()})
    command = [program("versitygw"), "--port", address, "posix", str(directory / "buckets")]

    def answers() -> bool:
        try:
            return bool(get(f"http://{address}/").status_code)
        except HTTPError:
            return False

    environment = {**os.environ, "ROOT_ACCESS_KEY": _KEYS[0], "ROOT_SECRET_KEY": _KEYS[1]}
    with running(ChildProcess("S3", command, directory / "s3.log", environment=environment), until=answers):
        yield "s3a://bucket/kontrast/checkpoint"


@pytest.mark.parametrize("file_system", [_hdfs, _s3])
def test_a_killed_job_goes_on_from_a_checkpoint_on_hadoop(file_system, java, tmp_path):
    """No row is lost or doubled, and nothing of the checkpoint is on this machine."""
    settings = tmp_path / "hadoop"
    settings.mkdir()
    streams = Streams(tmp_path)
    life = life_of("east", topics=20, losses=4)
    streams.append(life.lines)
    chance = random.Random(_SEED)
    with file_system(tmp_path, settings) as checkpoint:
        options = ("--checkpoint", checkpoint, "--hadoop-directory", str(settings))
        victim = Victim(streams, *options)
        for _ in range(_KILLS):
            before = end_offset(streams.outputs / "metadata")
            victim.start()
            assert victim.until(lambda before=before: end_offset(streams.outputs / "metadata") > before)
            time.sleep(chance.uniform(0, 2.0))
            victim.kill()
        assert len(streams.read("metadata")) < len(life.rows()["metadata"]), (
            "it was killed too late to be in the middle"
        )
        victim.finish()
        assert streams.read_all() == life.rows()
        command = [sys.executable, "-m", "cli", "stream", *options, "--check"]
        command += ["--from", f"journal:{streams.input}", "--to", f"journal:{streams.outputs}"]
        checked = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
        assert "the same as at its first start" in checked.stdout
    assert not streams.checkpoint.exists()
