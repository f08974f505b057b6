"""Congestion control where a route has its own: what was asked for counts, unless the route locks its own."""

import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from mpx_lab.lab import Lab
from mpx_lab.namespace import inside
from mpx_lab.topology import Topology, wan

from mpx.errors import UsageError
from mpx.net import congestion_control, tcp
from mpx.serve import Server
from mpx.serve.buffers import BLOCK_BYTES
from mpx.serve.connection import Connection

PAIR = Topology("pair", ("src",), ("dst",), (wan("src", "dst", 50_000_000, 0.01),))
PORT = 5000
AS_ANYBODY = ["setpriv", "--bounding-set=-net_admin"]  # root without it may use what all users may


@pytest.fixture
def lab(make_lab: Callable[..., Lab]) -> Lab:
    return make_lab(PAIR)  # whose routes have CUBIC


@pytest.fixture
def listener(lab: Lab) -> Iterator[tcp.Address]:
    address = lab.host("dst").addresses[0]
    with inside(lab.host("dst").netns, lambda: socket.create_server((address, PORT))):
        yield address, PORT


def connected(lab: Lab, address: tcp.Address, congestion: str | None) -> socket.socket:
    return inside(lab.host("src").netns, lambda: tcp.connect(address, 10, congestion=congestion))


def route(lab: Lab, *congestion: str) -> None:
    command = ["ip", "route", "change", "10.0.0.0/24", "dev", "eth0", "congctl", *congestion]
    lab.host("src").run(command, check=True)


def lock(lab: Lab, name: str) -> None:
    route(lab, "lock", name)


@pytest.mark.parametrize(("asked", "has"), [(None, "cubic"), ("bbr", "bbr"), ("reno", "reno")])
def test_what_is_asked_for_takes_the_place_of_the_routes(
    lab: Lab, listener: tcp.Address, asked: str | None, has: str
) -> None:
    with connected(lab, listener, asked) as connection:
        assert congestion_control.congestion_of(connection) == has
        assert not congestion_control.is_congestion_fixed(connection)


def test_so_it_does_at_a_server_that_sends(lab: Lab, listener: tcp.Address) -> None:
    with inside(lab.host("src").netns, socket.socket) as sock:
        connection = Connection(sock, BLOCK_BYTES, lambda: None, listener)
        connection.use_congestion("bbr")
        connection.connect()
        assert congestion_control.congestion_of(sock) == "bbr"


def test_a_route_that_locks_its_own_is_said(lab: Lab, listener: tcp.Address, tmp_path: Path) -> None:
    lock(lab, "reno")
    with connected(lab, listener, None) as connection:
        assert congestion_control.is_congestion_fixed(connection)
    with connected(lab, listener, "bbr") as connection:  # of data, say: the copy goes on
        assert congestion_control.congestion_of(connection) == "reno"
        with pytest.raises(UsageError, match="the route has reno and locks it"):
            congestion_control.set_congestion(connection, "bbr")
    with inside(lab.host("src").netns, socket.socket) as sock:
        sending = Connection(sock, BLOCK_BYTES, lambda: None, listener)
        sending.use_congestion("bbr")
        sending.connect()  # a server sends all the same
        assert congestion_control.congestion_of(sock) == "reno"


def serving(lab: Lab, served: Path) -> Server:
    address = lab.host("dst").addresses[0]
    served.mkdir()

    def serve() -> Server:
        return Server(served, host=address, writable=True, insecure=True, allow_from=["10.0.0.0/8"])

    return inside(lab.host("dst").netns, serve)


@pytest.mark.parametrize("congctl", [("cubic",), ("lock", "cubic"), ("bbr",)])
def test_who_may_choose_little_copies_with_what_the_route_has(
    lab: Lab, tmp_path: Path, congctl: tuple[str, ...]
) -> None:
    name = congctl[-1]
    permitted = congestion_control.ALLOWED_CONGESTION.read_text().split()
    if name in permitted:
        pytest.skip(f"{name} is permitted to all users of this host")
    route(lab, *congctl)
    (tmp_path / "a").write_bytes(b"x" * 1000)
    with serving(lab, tmp_path / "served") as server:
        url = f"ftp://{lab.host('dst').addresses[0]}:{server.port}/"
        policy = "fast" if name == "bbr" else "fair"
        for i, asked in enumerate((["--policy", policy], ["--congestion", name])):
            command = [*AS_ANYBODY, sys.executable, "-m", "mpx", "copy", "-q", *asked]
            command += ["--report", str(tmp_path / "report.json"), str(tmp_path / "a"), f"{url}{i}"]
            lab.host("src").run(command, check=True)
            told = json.loads((tmp_path / "report.json").read_text())
            assert told["decisions"]["congestion"] == name
            assert (tmp_path / "served" / str(i)).read_bytes() == b"x" * 1000


def test_what_a_probe_decides_has_heard_of_the_route(lab: Lab, tmp_path: Path) -> None:
    lock(lab, "reno")
    with serving(lab, tmp_path / "served") as server:
        target = f"{lab.host('dst').addresses[0]}:{server.port}"
        command = [sys.executable, "-m", "mpx", "probe", "--json", "--window", "1s", target]
        told = json.loads(lab.host("src").run(command, check=True, stdout=subprocess.PIPE).stdout)
    assert told["decision"]["congestion"] == "reno"
    assert "the route to the server has reno and locks it" in told["decision"]["reason"]


def test_a_copy_goes_on_over_a_route_that_locks_its_own(lab: Lab, tmp_path: Path) -> None:
    lock(lab, "reno")
    (tmp_path / "a").write_bytes(b"x" * 1000)
    address, served = lab.host("dst").addresses[0], tmp_path / "served"
    with serving(lab, served) as server:
        command = [sys.executable, "-m", "mpx", "copy", "-q", "--report", str(tmp_path / "report.json")]
        automatic = ["--congestion", "auto"]
        command += [str(tmp_path / "a"), f"ftp://{address}:{server.port}/a"]
        lab.host("src").run([*command, *automatic], check=True)
        told = json.loads((tmp_path / "report.json").read_text())
        by_name = lab.host("src").run(
            [*command, "--congestion", "bbr", "--overwrite", "always"], stderr=subprocess.PIPE
        )
    assert (served / "a").read_bytes() == b"x" * 1000
    assert told["decisions"]["congestion"] == "reno"
    assert any("the route to the server has reno and locks it" in note for note in told["notes"])
    assert by_name.returncode == 2 and b"locks it" in by_name.stderr
