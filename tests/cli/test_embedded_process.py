"""Ports of embedded servers, which stay reserved while their servers are away."""

from __future__ import annotations

import socket

import pytest

from cli.embedded.process import free_port


def test_a_port_is_reserved_for_servers_that_come_and_go():
    port = free_port()
    for _ in range(2):
        with socket.create_server(("127.0.0.1", port)) as server:
            socket.create_connection(server.getsockname()).close()
    with socket.socket() as other, pytest.raises(OSError, match="in use"):  # another process that looks for a free one
        other.bind(("127.0.0.1", port))
