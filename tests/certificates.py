"""Certificates for servers on 127.0.0.1, made as tests need them."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.programs import program


def make_self_signed(certificate: Path, key: Path, name: str) -> None:
    """Write a certificate for 127.0.0.1 that is its own authority, and its key, which has no passphrase."""
    subject = f"-subj /CN={name} -addext subjectAltName=IP:127.0.0.1"
    options = f"req -x509 -newkey rsa:2048 -nodes -days 2 {subject}".split()
    command = [program("openssl"), *options, "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
