"""The container's start: `kontrast`, or a role of Spark on Kubernetes, by real processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from cli.embedded.process import free_port
from tests.deploy.image_root import ROOT

_PROGRAM = ROOT / "deploy" / "entrypoint.py"
_PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"


def _start(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the entrypoint with Spark's variables, both streams as one."""
    return subprocess.run(
        [sys.executable, _PROGRAM, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PATH": _PATH, **environment},
        timeout=300,
        check=False,
    )


def test_its_arguments_are_those_of_kontrast():
    started = _start("serve", "--help")
    assert started.returncode == 0
    assert "Usage: kontrast serve" in started.stdout


@pytest.mark.nightly
def test_a_driver_is_spark_submit_in_this_container(java, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "from pyspark.sql import SparkSession\n"
        "conf = SparkSession.builder.master('local[1]').getOrCreate().sparkContext.getConf()\n"
        "print(conf.get('spark.driver.bindAddress'), conf.get('spark.submit.deployMode'))\n"
    )
    started = _start("driver", "--conf", "spark.ui.enabled=false", str(program), SPARK_DRIVER_BIND_ADDRESS="127.0.0.1")
    assert "127.0.0.1 client" in started.stdout.splitlines(), started.stdout


@pytest.mark.nightly
def test_an_executor_is_the_backend_of_kubernetes_with_its_variables(java, tmp_path):
    port = free_port()
    started = _start(
        "executor",
        SPARK_DRIVER_URL=f"spark://CoarseGrainedScheduler@127.0.0.1:{port}",
        SPARK_EXECUTOR_ID="1",
        SPARK_EXECUTOR_CORES="1",
        SPARK_EXECUTOR_MEMORY="256m",
        SPARK_APPLICATION_ID="app",
        SPARK_EXECUTOR_POD_IP="127.0.0.1",
        SPARK_RESOURCE_PROFILE_ID="0",
        SPARK_EXECUTOR_POD_NAME="executor-1",
        SPARK_JAVA_OPT_1="-Dspark.rpc.lookupTimeout=1s",
        SPARK_JAVA_OPT_0=f"-Dsecond.comes.after={tmp_path} with spaces",
    )
    assert started.returncode != 0
    assert f"127.0.0.1:{port}" in started.stdout, "it looks for its driver"
    assert "Usage: KubernetesExecutorBackend" not in started.stdout


@pytest.mark.parametrize("role", ["driver", "executor"])
def test_an_image_without_spark_names_the_other_one(role, tmp_path):
    without = [sys.executable, "-S", "-E", _PROGRAM, role]
    started = subprocess.run(
        without, capture_output=True, text=True, env={"SPARK_DRIVER_BIND_ADDRESS": "", "SPARK_EXECUTOR_MEMORY": "1g"}
    )
    assert started.returncode == 1
    assert started.stderr == "kontrast: this image has no Spark. Use the image that is built without --target light\n"


@pytest.mark.nightly
def test_it_runs_the_spark_that_is_pinned(java):
    started = _start("driver", "--version", SPARK_DRIVER_BIND_ADDRESS="127.0.0.1")
    assert f"version {pyspark.__version__}" in started.stdout
