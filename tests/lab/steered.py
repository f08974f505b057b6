"""A controller and a lab that it steers, with streams whose ways can be seen."""

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from mpx_lab.lab import Lab
from running_controller import Running

Make = Callable[..., Lab]
Eventually = Callable[..., None]
BETWEEN = ("s1-s2", "s1-s3", "s1-s4", "s1-s5")
MANY = 300_000  # bytes; what else is on a link is far less
SINK = """
import socket, threading
listening = socket.create_server(("", 5001))
print("ready", flush=True)
def drain(connection):
    left = int.from_bytes(connection.recv(8, socket.MSG_WAITALL), "big")
    while left and (data := connection.recv(1 << 16)):
        left -= len(data)
    connection.send(b"!")
    connection.recv(1)
while True:
    threading.Thread(target=drain, args=(listening.accept()[0],), daemon=True).start()
"""
# It ends with a reset, so that its port is free again at once.
SEND = """
import socket, struct, sys
to, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with socket.create_connection((to, 5001), 30, ("", port)) as connection:
    connection.sendall(count.to_bytes(8, "big") + bytes(count))
    assert connection.recv(1) == b"!"
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
"""


@pytest.fixture
def sink() -> Iterator[Callable[[Lab], None]]:
    """`sink(lab)` has dst read what anybody sends to port 5001."""
    with contextlib.ExitStack() as ended:

        def start(lab: Lab) -> None:
            process = lab.host("dst").popen([sys.executable, "-c", SINK], stdout=subprocess.PIPE)
            ended.callback(process.wait)
            ended.callback(process.kill)
            assert process.stdout is not None and process.stdout.readline() == b"ready\n"

        yield start


def send(lab: Lab, port: int, count: int = MANY) -> None:
    """Have src send from that port, and return when dst has it all."""
    lab.host("src").run(
        [sys.executable, "-c", SEND, lab.host("src").address_of("dst"), str(port), str(count)],
        check=True,
        timeout=60,
    )


def carried(lab: Lab) -> list[int]:
    """Return the bytes that each of the four links has carried from src to dst."""
    return [lab.link(name).stats().a_to_b.delivered.bytes for name in BETWEEN]


def filled(lab: Lab, port: int) -> list[int]:
    """Return the places of the links that what src sends from a port goes over."""
    before = carried(lab)
    send(lab, port)
    return [n for n, (was, now) in enumerate(zip(before, carried(lab), strict=True)) if now - was >= MANY]


def ready(lab: Lab, running: Running, eventually: Eventually, folder: Path) -> None:
    """Tell what links carry, and wait until all of them are found and both hosts have spoken."""
    capacities = folder / "capacities.json"
    capacities.unlink(missing_ok=True)
    capacities.symlink_to(lab.status()["capacities"])
    eventually(lambda: [link["rate_bps"] for link in running.get("topology")["links"]].count(100e6) == 8)
    eventually(lambda: len(running.get("topology")["links"]) == 16)

    def spoken() -> bool:
        lab.host("src").run(
            [sys.executable, "-c", SEND, lab.host("src").address_of("dst"), "0", "1"],
            stderr=subprocess.DEVNULL,
        )
        return len(running.get("topology")["hosts"]) == 2

    eventually(spoken)


def ofctl(lab: Lab, what: str, switch: str, *words: str) -> str:
    """Run ovs-ofctl with a switch of a lab, beside its controller."""
    asked = ["ovs-ofctl", "-O", "OpenFlow13", what, f"unix:{lab.folder}/ovs/{switch}.mgmt", *words]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout
