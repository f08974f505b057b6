"""The controller with a real Open vSwitch and a bridge of Linux that joins two of its ports."""

import subprocess
import sys
from pathlib import Path

from mpx_lab.lab import Lab
from mpx_lab.plan import Controller
from mpx_lab.steps import SWITCHES, netns_name
from running_controller import controller
from steered import Eventually, Make, ready

BRIDGE = "ordinary"
# Nobody listens there: who is reached says so.
ASK = """
import contextlib, socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking, contextlib.suppress(ConnectionRefusedError):
    asking.settimeout(30)
    asking.connect(("10.0.0.200", 9))
    asking.send(b"?")
    asking.recv(1)
"""


def ip(lab: Lab, *words: str) -> str:
    asked = ["ip", "-n", netns_name(lab.id, SWITCHES), *words]
    return subprocess.run(asked, check=True, capture_output=True, text=True).stdout


def joined(lab: Lab, *switches: str) -> None:
    """Join switches by a bridge, which is a host of its own, too."""
    ip(lab, "link", "add", BRIDGE, "type", "bridge")
    ip(lab, "address", "add", "10.0.0.200/24", "dev", BRIDGE)
    ip(lab, "link", "set", BRIDGE, "up")
    for switch in switches:
        ip(lab, "link", "add", f"b-{switch}", "type", "veth", "peer", "name", f"o-{switch}")
        ip(lab, "link", "set", f"b-{switch}", "master", BRIDGE, "up")
        database = f"--db=unix:{lab.folder}/ovs/db.sock"
        subprocess.run(["ovs-vsctl", database, "add-port", switch, f"o-{switch}"], check=True)
        ip(lab, "link", "set", f"o-{switch}", "up")


def reach(lab: Lab) -> None:
    lab.host("src").run([sys.executable, "-c", ASK], check=True, timeout=60)


def test_no_frame_circles_over_an_ordinary_bridge(
    make_lab: Make, eventually: Eventually, tmp_path: Path
) -> None:
    with controller(tmp_path / "state.json", 0, "", "-v", errors=tmp_path / "log") as running:
        lab = make_lab("thesis-a", controller=Controller("127.0.0.1", running.port))
        ready(lab, running, eventually, tmp_path)
        joined(lab, "s2", "s3")
        eventually(lambda: len(running.get("topology")["unused"]) == 1)
        (unused,) = running.get("topology")["unused"]
        assert unused.startswith("3:")
        eventually(lambda: len(running.get("topology")["edges"]) == 3)
        reach(lab)
        hosts = running.get("topology")["hosts"]
        (beyond,) = (host for host in hosts if "10.0.0.200" in host["addresses"])
        assert beyond["port"].startswith("2:")
        ip(lab, "link", "set", "b-s2", "down")
        eventually(lambda: running.get("topology")["unused"] == [])
        reach(lab)
        assert (
            int(ip(lab, "-o", "-s", "link", "show", BRIDGE).split("RX:")[1].split("\\")[1].split()[1]) < 1000
        )
