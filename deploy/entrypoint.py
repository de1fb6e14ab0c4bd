"""Start of a container: `kontrast`, or Spark's driver or executor if Spark on Kubernetes asks for one.

Spark names the role in the first argument and describes an executor in the environment, so that one image serves the
chart's Deployments and its SparkApplication. It needs only the standard library.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

_BACKEND = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
_JAVA_OPTION = "SPARK_JAVA_OPT_"
_OF_BACKEND = {
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "--podName": "SPARK_EXECUTOR_POD_NAME",
}


def command_of(arguments: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Return the command line of a container with these arguments. Raise KeyError for a variable that Spark omits."""
    if arguments[:1] == ["driver"]:
        address = f"spark.driver.bindAddress={environment['SPARK_DRIVER_BIND_ADDRESS']}"
        submit = str(_spark_home() / "bin" / "spark-submit")
        return [submit, "--conf", address, "--deploy-mode", "client", *arguments[1:]]
    if arguments[:1] == ["executor"]:
        return _executor(environment)
    return ["kontrast", *arguments]


def _executor(environment: Mapping[str, str]) -> list[str]:
    java = Path(environment["JAVA_HOME"], "bin", "java") if environment.get("JAVA_HOME") else "java"
    options = sorted(
        (int(name.removeprefix(_JAVA_OPTION)), value)
        for name, value in environment.items()
        if name.startswith(_JAVA_OPTION)
    )
    memory = environment["SPARK_EXECUTOR_MEMORY"]
    settings = [environment.get(name) for name in ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "SPARK_CLASSPATH")]
    classes = ":".join(filter(None, [*settings, f"{_spark_home()}/jars/*"]))
    of_backend = [word for option, name in _OF_BACKEND.items() for word in (option, environment[name])]
    java_options = [*(value for _, value in options), f"-Xms{memory}", f"-Xmx{memory}"]
    return [str(java), *java_options, "-cp", classes, _BACKEND, *of_backend]


def _spark_home() -> Path:
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        sys.exit("kontrast: this image has no Spark. Use the image that is built without --target light")
    return Path(found.origin).parent


if __name__ == "__main__":
    command = command_of(sys.argv[1:], os.environ)
    os.execvp(command[0], command)
