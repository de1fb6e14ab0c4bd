"""Each value of the chart changes an object, in every mode for which values.yaml documents it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.deploy.test_chart import CHART, EXAMPLE, rendered

pytestmark = pytest.mark.deploy

_MONITORING = {name: {"enabled": True} for name in ("podMonitor", "serviceMonitor", "prometheusRules", "boards")}
_SPARK = {"sparkApplication": {"enabled": True}, "persistence": {"accessMode": "ReadWriteMany"}}
_MODES: dict[str, dict[str, Any]] = {"together": {}, "apart": _MONITORING, "spark": {**_MONITORING, **_SPARK}}
_EVERYWHERE, _OF_JOB = ("together", "apart", "spark"), ("apart", "spark")
_JOB = "[stream]\nfrom = 'kafka://kafka:9092/changes'\n[watch]\nelection_zookeeper = 'zookeeper:2181'\n"
_PLACED = {"key": "kafka", "operator": "Exists"}

# The value of each path, the modes in which it has an effect, and the kinds of objects that it must reach there.
_CHANGED: dict[str, tuple[Any, tuple[str, ...], set[str]]] = {
    "mode": ("apart", (), set()),  # test_chart.py renders both
    "image.repository": ("registry.example/kontrast", ("together",), {"Deployment"}),
    "image.tag": ("2", _EVERYWHERE, {"Deployment"}),
    "image.digest": (f"sha256:{64 * '0'}", _OF_JOB, {"Deployment"}),
    "image.pullPolicy": ("Always", _EVERYWHERE, {"Deployment"}),
    "lightImage.repository": ("registry.example/light", _OF_JOB, {"Deployment"}),
    "lightImage.tag": ("2", (), set()),  # of lightImage.repository, by helm-unittest
    "lightImage.digest": (f"sha256:{64 * '0'}", (), set()),
    "imagePullSecrets": ([{"name": "registry"}], _EVERYWHERE, {"Deployment"}),
    "config": (_JOB, _EVERYWHERE, {"ConfigMap", "Deployment"}),
    "existingSecrets": (["passwords", "keytab", "tls"], _EVERYWHERE, {"Deployment"}),
    "krb5ConfigMap": ("other-realms", _EVERYWHERE, {"Deployment"}),
    "hadoopSecret": ("hadoop", _EVERYWHERE, {"Deployment"}),
    "watchers": (3, _OF_JOB, {"Deployment"}),
    "servers": (3, _OF_JOB, {"Deployment"}),
    "persistence.enabled": (False, _OF_JOB, set()),
    "persistence.existingClaim": ("old", _EVERYWHERE, set()),
    "persistence.size": ("1Ti", _EVERYWHERE, {"PersistentVolumeClaim"}),
    "persistence.storageClass": ("fast", _EVERYWHERE, {"PersistentVolumeClaim"}),
    "persistence.accessMode": ("ReadWriteOncePod", ("together", "apart"), {"PersistentVolumeClaim"}),
    "resources.together": ({"limits": {"memory": "9Gi"}}, ("together",), {"Deployment"}),
    "resources.watch": ({"limits": {"memory": "9Gi"}}, _OF_JOB, {"Deployment"}),
    "resources.stream": ({"limits": {"memory": "9Gi"}}, _OF_JOB, set()),
    "resources.serve": ({"limits": {"memory": "9Gi"}}, _OF_JOB, {"Deployment"}),
    "service.type": ("NodePort", _EVERYWHERE, {"Service"}),
    "service.port": (80, _EVERYWHERE, {"Service"}),
    "networkPolicy.enabled": (False, _EVERYWHERE, {"NetworkPolicy"}),
    "networkPolicy.from": ([{"podSelector": {}}], _EVERYWHERE, {"NetworkPolicy"}),
    "networkPolicy.egress": ([{"ports": [{"port": 2181}]}], _EVERYWHERE, {"NetworkPolicy"}),
    "podMonitor.enabled": (False, _OF_JOB, {"PodMonitor"}),
    "podMonitor.labels": ({"release": "other"}, _OF_JOB, {"PodMonitor"}),
    "podMonitor.interval": ("7s", _OF_JOB, {"PodMonitor"}),
    "serviceMonitor.enabled": (False, _OF_JOB, {"ServiceMonitor"}),
    "serviceMonitor.labels": ({"release": "other"}, _OF_JOB, {"ServiceMonitor"}),
    "serviceMonitor.interval": ("7s", _OF_JOB, {"ServiceMonitor"}),
    "scrape.tlsConfig": ({"serverName": "kontrast"}, _OF_JOB, {"PodMonitor", "ServiceMonitor"}),
    "scrape.basicAuth": (
        {"username": {"name": "scrape", "key": "username"}},
        _OF_JOB,
        {"PodMonitor", "ServiceMonitor"},
    ),
    "prometheusRules.enabled": (False, _OF_JOB, {"PrometheusRule"}),
    "prometheusRules.labels": ({"release": "other"}, _OF_JOB, {"PrometheusRule"}),
    "boards.enabled": (True, ("together",), {"ConfigMap"}),
    "boards.labels": ({"dashboard": "1"}, _OF_JOB, {"ConfigMap"}),
    "boards.annotations": ({"folder": "Kafka"}, _OF_JOB, {"ConfigMap"}),
    "sparkApplication.enabled": (False, ("spark",), {"SparkApplication"}),
    "sparkApplication.image": ("spark:1", ("spark",), {"SparkApplication"}),
    "sparkApplication.sparkVersion": ("4.2.0", ("spark",), {"SparkApplication"}),
    "sparkApplication.driver": ({"memory": "1200m"}, ("spark",), {"SparkApplication"}),
    "sparkApplication.executor": ({"instances": 9}, ("spark",), {"SparkApplication"}),
    "sparkApplication.sparkConf": ({"spark.task.cpus": "2"}, ("spark",), {"SparkApplication"}),
    "podLabels": ({"team": "kafka"}, _EVERYWHERE, {"Deployment"}),
    "podAnnotations": ({"team": "kafka"}, _EVERYWHERE, {"Deployment"}),
    "extraEnv": ([{"name": "TZ", "value": "UTC"}], _EVERYWHERE, {"Deployment"}),
    "extraVolumes": ([{"name": "extra", "emptyDir": {}}], _EVERYWHERE, {"Deployment"}),
    "extraVolumeMounts": ([{"name": "extra", "mountPath": "/extra"}], _EVERYWHERE, {"Deployment"}),
    "priorityClassName": ("important", _EVERYWHERE, {"Deployment"}),
    "nodeSelector": ({"disk": "ssd"}, _EVERYWHERE, {"Deployment"}),
    "tolerations": ([_PLACED], _EVERYWHERE, {"Deployment"}),
    "affinity": ({"nodeAffinity": {}}, _EVERYWHERE, {"Deployment"}),
}
# Of these the job alone has none, so the SparkApplication may stay as it is.
_NOT_OF_JOB = (
    *("watchers", "servers", "lightImage", "resources.watch", "resources.serve", "service", "networkPolicy", "boards"),
    *("podMonitor", "serviceMonitor", "scrape", "prometheusRules", "persistence.size", "persistence.storageClass"),
)


def _paths(values: dict[str, Any], above: str = "") -> Iterator[str]:
    """Yield the paths of all values. A free mapping, like labels, is one value."""
    for name, value in values.items():
        if isinstance(value, dict) and value and f"{above}{name}" not in _CHANGED:
            yield from _paths(value, f"{above}{name}.")
        else:
            yield above + name


def _by_kind(*values: str) -> dict[str, list[dict[str, Any]]]:
    kinds: dict[str, list[dict[str, Any]]] = {}
    for manifest in rendered(*values):
        kinds.setdefault(manifest["kind"], []).append(manifest)
    return kinds


@pytest.fixture(scope="module")
def modes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, ...]]:
    """Write the values of each mode into a file, because helm lets --set win against --set-json."""
    directory = tmp_path_factory.mktemp("values")
    for mode, values in _MODES.items():
        (directory / mode).write_text(yaml.safe_dump(values))
    return {mode: (*((EXAMPLE,) if mode in _OF_JOB else ()), f"--values={directory / mode}") for mode in _MODES}


@pytest.fixture(scope="module")
def before(modes: dict[str, tuple[str, ...]]) -> dict[str, dict[str, list[dict[str, Any]]]]:
    return {mode: _by_kind(*values) for mode, values in modes.items()}


def test_the_table_has_every_value_of_the_chart():
    assert set(_paths(yaml.safe_load((CHART / "values.yaml").read_text()))) == set(_CHANGED)


@pytest.mark.parametrize(("path", "mode"), [(path, mode) for path, each in _CHANGED.items() for mode in each[1]])
def test_a_value_changes_the_objects_that_it_is_for(path, mode, modes, before):
    value, _, kinds = _CHANGED[path]
    after = _by_kind(*modes[mode], f"--set-json={path}={json.dumps(value)}")
    changed = {kind for kind in before[mode].keys() | after.keys() if before[mode].get(kind) != after.get(kind)}
    expected = kinds | ({"SparkApplication"} if mode == "spark" and not path.startswith(_NOT_OF_JOB) else set())
    assert changed >= expected
    assert changed, "a value without an effect"
