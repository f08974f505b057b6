"""A stock server on a host of a lab: it starts or says why not, and leaves no session."""

import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from install_peers import find_peer
from mpx_lab.lab import Lab
from mpx_lab.namespace import inside
from mpx_lab.state import LabError
from mpx_lab.stock_server import stock_server
from mpx_lab.topologies import named
from traces import processes_in


def test_sessions_end_with_the_server(make_lab: Callable[..., Lab], tmp_path: Path) -> None:
    find_peer("globus-gridftp-server")
    host = make_lab(named("path")).host("dst")
    with stock_server(host, tmp_path) as url:
        where = (host.addresses[0], int(url.rpartition(":")[2]))
        clients = [inside(host.netns, lambda: socket.create_connection(where, timeout=30)) for _ in range(2)]
        for client in clients:
            assert client.recv(4)  # a session speaks
        assert len(processes_in(host.netns)) == 3
    assert processes_in(host.netns) == []
    for client in clients:
        client.close()


def test_a_server_that_does_not_start_says_why(
    make_lab: Callable[..., Lab], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = make_lab(named("path")).host("dst")
    monkeypatch.setenv("PATH", str(tmp_path))
    why = "did not start on dst: .*cannot run globus-gridftp-server: No such file"
    with pytest.raises(LabError, match=why), stock_server(host, tmp_path):
        pass
