"""A real API server of Kubernetes, with etcd, takes every object of the chart without an error or a warning."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from cli.embedded.process import ChildProcess, free_port
from tests.certificates import make_self_signed
from tests.deploy.test_chart import APART, SCHEMAS, SPARK, rendered
from tests.programs import program

pytestmark = [pytest.mark.deploy, pytest.mark.xdist_group("api server")]

_START_SECONDS = 300
_RESTRICTED = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Start etcd and an API server, which gets the kinds of both operators. Yield a client that may do everything."""
    directory = tmp_path_factory.mktemp("kubernetes")
    address = f"127.0.0.1:{free_port()}"
    etcd = ChildProcess("etcd", _etcd(directory, f"http://{address}"), directory / "etcd.log")
    command, port = _api_server(directory, f"http://{address}"), free_port()
    server = ChildProcess("kube-apiserver", [*command, f"--secure-port={port}"], directory / "kube-apiserver.log")
    with httpx.Client(
        base_url=f"https://127.0.0.1:{port}",
        verify=ssl.create_default_context(cafile=directory / "certificate.pem"),
        headers={"Authorization": "Bearer secret"},
        timeout=60,
    ) as client:
        try:
            etcd.launch()
            server.launch()
            server.wait_until(partial(_answers, client, "/readyz"), timeout_seconds=_START_SECONDS)
            for file in SCHEMAS.glob("*.yaml"):
                definition = yaml.safe_load(file.read_text())
                _create(client, definition)
                spec = definition["spec"]
                path = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
                server.wait_until(partial(_answers, client, path), timeout_seconds=_START_SECONDS)
            yield client
        finally:
            server.stop()
            etcd.stop()


def _etcd(directory: Path, address: str) -> list[str]:
    peers = f"http://127.0.0.1:{free_port()}"
    command = [program("etcd"), f"--data-dir={directory}/etcd", f"--initial-cluster=default={peers}"]
    command += [f"--listen-peer-urls={peers}", f"--initial-advertise-peer-urls={peers}"]
    return [*command, f"--listen-client-urls={address}", f"--advertise-client-urls={address}"]


def _api_server(directory: Path, etcd: str) -> list[str]:
    key, certificate, tokens = (directory / name for name in ("key.pem", "certificate.pem", "tokens.csv"))
    make_self_signed(certificate, key, "kubernetes")
    tokens.write_text("secret,admin,admin,system:masters\n")
    command = [program("kube-apiserver"), f"--etcd-servers={etcd}", f"--token-auth-file={tokens}"]
    command += ["--bind-address=127.0.0.1", "--authorization-mode=RBAC", "--service-cluster-ip-range=10.0.0.0/24"]
    command += [f"--tls-cert-file={certificate}", f"--tls-private-key-file={key}"]
    command += ["--service-account-issuer=https://kubernetes", f"--service-account-key-file={key}"]
    return [*command, f"--service-account-signing-key-file={key}"]


def _answers(client: httpx.Client, path: str) -> bool:
    try:
        return client.get(path).is_success
    except httpx.TransportError:
        return False


def _create(client: httpx.Client, manifest: dict[str, Any]) -> None:
    """Create an object. Fail unless the server takes every field of it without a warning."""
    version = manifest["apiVersion"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    names = {kind["kind"]: kind["name"] for kind in client.get(root).json()["resources"] if "/" not in kind["name"]}
    namespace = manifest["metadata"].get("namespace")
    within = f"/namespaces/{namespace}" if namespace else ""
    path = f"{root}{within}/{names[manifest['kind']]}"
    created = client.post(path, params={"fieldValidation": "Strict"}, json=manifest)
    assert created.status_code == httpx.codes.CREATED, created.text
    assert created.headers.get_list("warning") == []


@pytest.mark.parametrize("values", [(), APART, (*APART, *SPARK)])
def test_it_takes_every_object_of_the_chart(values, api, request):
    namespace = f"values-{request.node.callspec.id.removeprefix('values')}"
    _create(api, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": _RESTRICTED}})
    for manifest in rendered(*values, namespace=namespace):
        _create(api, manifest)
