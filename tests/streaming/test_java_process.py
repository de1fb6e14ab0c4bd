"""Spark's Java process, started like Spark's own scripts do, and its Python processes, which start quickly."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pyspark
import pytest

from streaming.errors import StreamError
from streaming.spark.java_process import SPARK_OPTIONS, JavaProcess

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
    (row,) = spark.range(1).mapInArrow(_what_is_imported, "place string, pandas boolean").collect()
    assert row.place == pyspark.__file__
    assert not row.pandas


def _what_is_imported(batches):
    import sys

    import pyarrow
    import pyspark as theirs

    from streaming.python_memory import leave_pandas_out

    leave_pandas_out()
    for _ in batches:
        place = pyarrow.array([theirs.__file__])  # which would import pandas
        has_pandas = pyarrow.array(["pandas" in sys.modules])
        yield pyarrow.RecordBatch.from_arrays([place, has_pandas], ["place", "pandas"])


def test_a_java_that_does_not_start_is_one_sentence(java):
    with (
        pytest.raises(StreamError, match="Spark's Java process did not start: Error: "),
        JavaProcess(memory="1x").running(),
    ):
        pass


def test_a_java_without_memory_ends_with_a_sentence_that_names_the_setting(java):
    with (
        pytest.raises(StreamError, match="is gone: its memory of 64m ran out. Give it more with --driver-memory"),
        JavaProcess(memory="64m").running() as gateway,
    ):
        gateway.new_array(gateway.jvm.byte, 200_000_000)
