"""Foreign programs for tests. A test whose program is missing fails with one sentence."""

from __future__ import annotations

import shutil

import pytest

_BUILT = "none. Go builds it: make check-deploy"

# Program KEY is in this Debian package.
_PACKAGES = {
    "alertmanager": "prometheus-alertmanager",
    "amtool": "prometheus-alertmanager",
    "amtool-of-teams": _BUILT,
    "chromium": "chromium",
    "etcd": f"{_BUILT} LONG=1",
    "faketime": "faketime",
    "helm": _BUILT,
    "helm-unittest": _BUILT,
    "kadmin.local": "krb5-admin-server",
    "kdb5_util": "krb5-kdc",
    "krb5kdc": "krb5-kdc",
    "kube-apiserver": f"{_BUILT} LONG=1",
    "kube-score": _BUILT,
    "kubeconform": _BUILT,
    "openssl": "openssl",
    "prometheus": "prometheus",
    "promtool": "prometheus",
    "systemd-analyze": "systemd",
    "unshare": "util-linux",
    "versitygw": f"{_BUILT} LONG=1",
}


class MissingProgramError(pytest.fail.Exception):  # type: ignore[name-defined, misc] # no stub
    """A program that is not in PATH. pytest shows the sentence alone."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is not in PATH: install it (Debian: package {_PACKAGES[name]})", pytrace=False)


def program(name: str) -> str:
    """Return the program's path. Raise MissingProgramError."""
    path = shutil.which(name)
    if path is None:
        raise MissingProgramError(name)
    return path
