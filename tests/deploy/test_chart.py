"""The Helm chart, by helm, its own tests, schemas and rules. `make check-deploy` builds the programs and runs this."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pyspark
import pytest
import yaml

from cli.settings.config import read_settings, serve_config, stream_config, watch_configs
from streaming.java.artifacts import SPARK_KAFKA_CONNECTOR
from tests.programs import program

pytestmark = pytest.mark.deploy

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "kontrast"
MONITORING = tuple(
    f"--set={name}.{value}"
    for name in ("podMonitor", "serviceMonitor", "prometheusRules", "boards")
    for value in ("enabled=true", "labels.release=prometheus")
)
EXAMPLE = f"--values={CHART / 'values-apart.yaml'}"
APART = (EXAMPLE, "--set=existingSecrets={passwords,keytab}", "--set=krb5ConfigMap=realms", *MONITORING)
SPARK = ("--set=sparkApplication.enabled=true,persistence.accessMode=ReadWriteMany",)
SCHEMAS = ROOT / "build" / "schemas"  # those of Kubernetes by version, and those of the operators' kinds
MANIFESTS = sorted((ROOT / "deploy" / "kubernetes").glob("*.yml"))
# Advice of kube-score that the chart leaves to its user: pulling the image at each start, a limit of processor time,
# which would slow the job down, and a limit of scratch files, which the volume has.
LEFT_TO_THE_USER = (
    "container-image-pull-policy",
    "container-resources",
    "container-ephemeral-storage-request-and-limit",
)


def helm(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program("helm"), *map(str, arguments)], capture_output=True, text=True)


def rendered(*values: str, namespace: str = "default") -> list[dict[str, Any]]:
    done = helm("template", "prod", CHART, "--kube-version=1.30", f"--namespace={namespace}", *values)
    assert (done.returncode, done.stderr) == (0, "")  # it names symbolic links
    return [manifest for manifest in yaml.safe_load_all(done.stdout) if manifest]


@pytest.mark.parametrize("values", [(), (EXAMPLE,)])
def test_helm_finds_nothing_wrong(values):
    linted = helm("lint", "--strict", CHART, *values)
    assert linted.returncode == 0, linted.stdout + linted.stderr


def test_helm_unittest_renders_what_the_tests_of_the_chart_expect():
    suites = f"--file={Path('../../../tests/deploy/chart')}/*_test.yaml"
    tested = subprocess.run([program("helm-unittest"), "--strict", suites, CHART], capture_output=True, text=True)
    assert tested.returncode == 0, tested.stdout + tested.stderr


@pytest.mark.parametrize("version", ["1.25.0", "1.30.0", "1.37.0"])
@pytest.mark.parametrize("values", [(), APART, (*APART, *SPARK)])
def test_kubernetes_knows_every_field(values, version, tmp_path):
    file = tmp_path / "manifests.yaml"
    file.write_text(yaml.safe_dump_all(rendered(*values)))
    schema = "{{.ResourceKind}}{{.KindSuffix}}.json"
    schemas = [f"-schema-location={place}/{schema}" for place in (SCHEMAS / f"v{version}", SCHEMAS)]
    command = [program("kubeconform"), "-strict", f"-kubernetes-version={version}", *schemas, file, *MANIFESTS]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("values", [(), APART, (*APART, *SPARK)])
def test_kube_score_finds_nothing_critical(values, tmp_path):
    file = tmp_path / "manifests.yaml"
    file.write_text(yaml.safe_dump_all(rendered(*values)))
    left = [part for check in LEFT_TO_THE_USER for part in ("--ignore-test", check)]
    scored = subprocess.run([program("kube-score"), "score", *left, file], capture_output=True, text=True)
    assert scored.returncode == 0, scored.stdout + scored.stderr


@pytest.mark.parametrize("values", [(), (EXAMPLE,)])
def test_the_configuration_in_the_values_is_one(values, tmp_path):
    (content,) = [m["data"]["kontrast.toml"] for m in rendered(*values) if m["kind"] == "ConfigMap"]
    file = tmp_path / "kontrast.toml"
    file.write_text(content)
    settings = read_settings(file, {})
    (watch,), stream, serve = watch_configs(settings, (), {}), stream_config(settings, {}), serve_config(settings, {})
    assert (watch.to, stream.sink) == (stream.source, serve.sources[0])


def test_the_operator_gets_every_rule_and_grafana_every_board():
    manifests = rendered(*MONITORING)
    rules = {m["metadata"]["name"].rpartition("-")[2]: m["spec"] for m in manifests if m["kind"] == "PrometheusRule"}
    files = {name: ROOT / "deploy" / "prometheus" / f"kontrast-{name}.yml" for name in ("self", "cluster")}
    assert rules == {name: yaml.safe_load(file.read_text()) for name, file in files.items()}
    boards = [m for m in manifests if m["metadata"]["labels"].get("grafana_dashboard") == "1"]
    assert {name: json.loads(text) for board in boards for name, text in board["data"].items()} == {
        path.name: json.loads(path.read_text()) for path in (CHART / "boards").glob("*.json")
    }


def test_the_spark_operator_runs_the_program_of_spark_submit():
    (job,) = [m["spec"] for m in rendered(*APART, *SPARK) if m["kind"] == "SparkApplication"]
    assert job["sparkVersion"] == pyspark.__version__
    assert (ROOT / job["mainApplicationFile"].removeprefix("local:///opt/kontrast/")).exists()
    for role in ("driver", "executor"):
        assert job["sparkConf"][f"spark.{role}.extraClassPath"] == f"/opt/kontrast-cache/{SPARK_KAFKA_CONNECTOR.name}/*"
        mounted = {mount["name"] for mount in job[role]["volumeMounts"]}
        assert (
            mounted
            == {volume["name"] for volume in job["volumes"]}
            == {"config", "state", "tmp", "secret-0", "secret-1", "krb5"}
        )
