"""The Helm chart, by helm itself and by Kubernetes' own schemas. `make check-deploy` builds helm and runs this."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.settings.config import read_settings, serve_config, stream_config, watch_configs
from tests.programs import program

pytestmark = pytest.mark.deploy

CHART = Path(__file__).parents[2] / "deploy" / "helm" / "kontrast"
APART = ("mode=apart", "existingSecret=kontrast", "podMonitor.enabled=true", "podMonitor.labels.release=prometheus")
NOT_OF_KUBERNETES = {"PodMonitor"}


def helm(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program("helm"), *map(str, arguments)], capture_output=True, text=True)


def rendered(*values: str) -> list[dict[str, Any]]:
    done = helm("template", "prod", CHART, "--kube-version=1.30", *(f"--set={value}" for value in values))
    assert done.returncode == 0, done.stderr
    return [manifest for manifest in yaml.safe_load_all(done.stdout) if manifest]


def test_helm_finds_nothing_wrong():
    linted = helm("lint", "--strict", CHART)
    assert linted.returncode == 0, linted.stdout + linted.stderr


@pytest.mark.parametrize("values", [(), APART])
def test_kubernetes_knows_every_field(values, tmp_path):
    for number, manifest in enumerate(rendered(*values)):
        if manifest["kind"] in NOT_OF_KUBERNETES:
            continue
        file = tmp_path / f"{number}.yaml"
        file.write_text(yaml.safe_dump(manifest))
        command = [Path(sys.executable).parent / "kubernetes-validate", "--strict", file]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, f"{manifest['kind']}: {done.stdout}{done.stderr}"


@pytest.mark.parametrize(("values", "commands"), [((), {"up": 1}), (APART, {"watch": 2, "stream": 1, "serve": 1})])
def test_every_pod_runs_one_command_without_rights(values, commands):
    deployments = [manifest["spec"] for manifest in rendered(*values) if manifest["kind"] == "Deployment"]
    assert {spec["template"]["spec"]["containers"][0]["args"][0]: spec["replicas"] for spec in deployments} == commands
    for spec in deployments:
        pod = spec["template"]["spec"]
        (container,) = pod["containers"]
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["automountServiceAccountToken"] is False
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert container["resources"]["limits"]["memory"]
        has_state = any(volume["name"] == "state" for volume in pod["volumes"])
        assert has_state is (container["args"][0] in ("up", "stream"))
        assert (spec.get("strategy") == {"type": "Recreate"}) is has_state


def test_the_configuration_in_the_values_is_one(tmp_path):
    (content,) = [manifest["data"]["kontrast.toml"] for manifest in rendered() if manifest["kind"] == "ConfigMap"]
    file = tmp_path / "kontrast.toml"
    file.write_text(content)
    settings = read_settings(file, {})
    assert len(watch_configs(settings, (), {})) == 1
    assert stream_config(settings, {}).sink == serve_config(settings, {}).source


@pytest.mark.parametrize("wrong", ["mode=alone", "watchers=0", "image.digest=sha256:1", "persistence.size=5", "typo=1"])
def test_a_wrong_value_is_refused(wrong):
    refused = helm("template", "prod", CHART, "--kube-version=1.30", f"--set={wrong}")
    assert refused.returncode != 0
    assert "values don't meet the specifications" in refused.stderr
