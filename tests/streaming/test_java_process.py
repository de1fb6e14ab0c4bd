"""Spark's Java process, started like Spark's own scripts do, and its Python processes, which start quickly."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import pyspark
import pytest
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark import SparkConf, SparkContext

from streaming.errors import StreamError
from streaming.spark import java_process
from streaming.spark.failure import is_full_disk
from streaming.spark.java_process import SPARK_OPTIONS, JavaProcess
from tests.waiting import eventually

_SPARK = Path(pyspark.__file__).parent


def test_its_options_are_those_of_sparks_own_scripts(java):
    launcher = ["-cp", f"{_SPARK}/jars/*", "org.apache.spark.launcher.Main", "org.apache.spark.deploy.SparkSubmit"]
    environment = {**os.environ, "SPARK_HOME": str(_SPARK), "SPARK_SCALA_VERSION": "2.13"}
    said = subprocess.run([java, *launcher, "pyspark-shell"], env=environment, capture_output=True, check=True).stdout
    command = said.decode().strip("\0\n").split("\0")
    given = command[
        command.index("-XX:+IgnoreUnrecognizedVMOptions") : command.index("org.apache.spark.deploy.SparkSubmit")
    ]
    # Derby's options belong to Hive, which is unused here.
    assert [option for option in given if not option.startswith("-Dderby.")] == list(SPARK_OPTIONS)


def test_sparks_python_processes_import_the_installed_pyspark(spark):
    (row,) = spark.range(1).mapInArrow(_where_pyspark_is, "place string").collect()
    assert row.place == pyspark.__file__


def _where_pyspark_is(batches):
    import pyarrow
    import pyspark as theirs

    for _ in batches:
        yield pyarrow.RecordBatch.from_arrays([pyarrow.array([theirs.__file__])], ["place"])


def test_a_python_process_of_spark_does_without_pandas():
    program = (
        "import sys, pyarrow; from streaming.python_memory import leave_pandas_out; leave_pandas_out(); "
        "pyarrow.array(['one']); print('pandas' in sys.modules)"  # else pyarrow imports it here
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True).stdout
    assert said == "False\n"


def test_a_session_of_a_killed_java_ends_without_a_warning(monkeypatch):
    def stop():
        raise Py4JError("An error occurred while calling o1.stop")

    context = SparkContext.__new__(SparkContext)
    context._jsc = SimpleNamespace(stop=stop)
    context._accumulatorServer = SimpleNamespace(shutdown=lambda: None)
    monkeypatch.setattr(java_process, "SparkContext", lambda **_: context)
    monkeypatch.setattr(java_process, "SparkSession", lambda of: of)
    monkeypatch.setattr(SparkContext, "_active_spark_context", SparkContext._active_spark_context)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with java_process.session_of(None, SparkConf(loadDefaults=False), {}):
            pass
    assert context._jsc is None


def test_a_java_that_does_not_start_is_one_sentence(java):
    with (
        pytest.raises(StreamError, match="Spark's Java process did not start: it ended with exit code 1, .* Error: "),
        JavaProcess(memory="1x").running(),
    ):
        pass


@pytest.mark.parametrize("has_address", [False, True])
def test_a_java_that_is_killed_in_its_launch_is_named_by_its_signal(java, monkeypatch, has_address):
    def wait_and_kill(process, address_file):
        eventually(address_file.exists) if has_address else None
        process.kill()
        process.wait()
        return connect(process, address_file)

    connect = java_process._connect
    monkeypatch.setattr(java_process, "_connect", wait_and_kill)
    with (
        pytest.raises(StreamError, match="Spark's Java process did not start: SIGKILL ended it"),
        JavaProcess(memory="256m").running(),
    ):
        pass


def test_a_failure_whose_java_is_gone_is_no_full_disk():
    def gone():
        raise Py4JNetworkError("Answer from Java side is empty")

    failed, error = Py4JJavaError.__new__(Py4JJavaError), StreamError("it failed")
    failed.java_exception = SimpleNamespace(getMessage=gone)
    error.__cause__ = failed
    assert not is_full_disk(error)


def test_a_java_without_memory_ends_with_a_sentence_that_names_the_setting(java):
    with (
        pytest.raises(StreamError, match="is gone: its memory of 64m ran out. Give it more with --driver-memory"),
        JavaProcess(memory="64m").running() as gateway,
    ):
        gateway.new_array(gateway.jvm.byte, 200_000_000)
