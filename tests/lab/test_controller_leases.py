"""Leases with a real Open vSwitch: streams that carry data keep theirs, others end, entries come back."""

import subprocess
import sys
import urllib.error
from collections.abc import Callable
from pathlib import Path

from mpx_lab.lab import Lab
from mpx_lab.plan import Controller
from running_controller import Running, controller
from steered import Eventually, Make, filled, ofctl, ready

CONFIG = """
[path_sets]
lease_s = 15
[api]
requests_per_s = 10000
"""
# Sends something now and then, until it is told to end.
TRICKLE = """
import socket, sys, threading
to, port = sys.argv[1], int(sys.argv[2])
with socket.create_connection((to, 5001), 30, ("", port)) as connection:
    connection.sendall((1 << 40).to_bytes(8, "big"))
    print("sending", flush=True)
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    while not ended.wait(0.1):
        connection.sendall(bytes(1000))
"""


def is_there(running: Running, number: int) -> bool:
    try:
        running.get(f"path-sets/{number}")
    except urllib.error.HTTPError as error:
        assert error.code == 404
        return False
    return True


def test_who_sends_keeps_the_lease_and_who_rests_does_not(
    make_lab: Make, sink: Callable[[Lab], None], eventually: Eventually, tmp_path: Path
) -> None:
    with controller(tmp_path / "state.json", config=CONFIG) as running:
        lab = make_lab("thesis-a", controller=Controller("127.0.0.1", running.port))
        sink(lab)
        ready(lab, running, eventually, tmp_path)
        src, dst = (lab.host(name).addresses[0] for name in ("src", "dst"))

        def assigned(port: int) -> int:
            number = int(running.ask("POST", "path-sets", {"source": src, "sink": dst})["id"])
            running.ask("POST", f"path-sets/{number}/streams", {"ports": [port]})
            return number

        words = [sys.executable, "-c", TRICKLE, lab.host("src").address_of("dst"), "4000"]
        with lab.host("src").popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdin is not None and process.stdout is not None
            assert process.stdout.readline() == b"sending\n"
            busy, idle = assigned(4000), assigned(4001)
            eventually(lambda: not is_there(running, idle))
            assert is_there(running, busy)  # assigned before, so it would have ended before
            process.stdin.close()
            process.wait(240)
        eventually(lambda: not is_there(running, busy))


def test_an_entry_that_its_switch_has_idled_out_comes_back(
    make_lab: Make, sink: Callable[[Lab], None], eventually: Eventually, tmp_path: Path
) -> None:
    with controller(tmp_path / "state.json") as running:
        lab = make_lab("thesis-a", controller=Controller("127.0.0.1", running.port))
        sink(lab)
        ready(lab, running, eventually, tmp_path)
        src, dst = (lab.host(name).addresses[0] for name in ("src", "dst"))
        number = running.ask("POST", "path-sets", {"source": src, "sink": dst})["id"]
        running.ask("POST", f"path-sets/{number}/streams", {"ports": [4000], "path": 2})
        matched = f"tcp,nw_src={src},nw_dst={dst},tp_src=4000"

        def entries() -> list[str]:
            return [line for line in ofctl(lab, "dump-flows", "s1").splitlines() if matched in line]

        (before,) = entries()
        assert "idle_timeout=600" in before and "send_flow_rem" in before
        words = dict(word.split("=", 1) for word in before.replace(",", " ").split() if "=" in word)
        same = f"cookie={words['cookie']},table=0,priority={words['priority']},{matched}"
        ofctl(lab, "add-flow", "s1", f"{same},idle_timeout=1,send_flow_rem,actions=drop")
        eventually(lambda: [line for line in entries() if "idle_timeout=600" in line])
        assert filled(lab, 4000) == [2]
