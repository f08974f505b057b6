"""Hosts that have not spoken yet, and a controller beside another, in a real Open vSwitch."""

import urllib.error
from collections.abc import Callable
from pathlib import Path

import pytest
from mpx_lab.lab import Lab
from mpx_lab.plan import Controller
from running_controller import Running, controller
from steered import Eventually, Make, filled, ofctl

ALONE = "[forwarding]\non = false\n"
TO_OTHERS = 5  # the port of s1 to src, and of s6 to dst; 1 leads to s2, and there 1 to s1 and 2 to s6


def found(lab: Lab, running: Running, eventually: Eventually) -> None:
    """Wait until all links are known, and ports to hosts as such; no host has said anything."""
    eventually(lambda: len(running.get("topology")["links"]) == 16)
    eventually(lambda: running.get("topology")["edges"] == ["1:5", "6:5"])


@pytest.mark.parametrize("family", [0, 1], ids=["IPv4", "IPv6"])
def test_hosts_that_have_not_spoken_are_asked_for(
    make_lab: Make, eventually: Eventually, tmp_path: Path, family: int
) -> None:
    with controller(tmp_path / "state.json") as running:
        lab = make_lab("thesis-a", controller=Controller("127.0.0.1", running.port))
        found(lab, running, eventually)
        src, dst = (lab.host(name).addresses[family] for name in ("src", "dst"))
        made = running.ask("POST", "path-sets", {"source": src, "sink": dst})
        assert len(made["paths"]) == 4
        hosts = {host["port"]: host["addresses"] for host in running.get("topology")["hosts"]}
        assert src in hosts["1:5"] and dst in hosts["6:5"]
        nobody = src[:-1] + "9"
        with pytest.raises(urllib.error.HTTPError) as refused:
            running.ask("POST", "path-sets", {"source": src, "sink": nobody})
        assert (
            refused.value.code == 404
            and f"no host with the address {nobody}" in refused.value.read().decode()
        )


def test_beside_another_controller(
    make_lab: Make, sink: Callable[[Lab], None], eventually: Eventually, tmp_path: Path
) -> None:
    with controller(tmp_path / "state.json", config=ALONE) as running:
        lab = make_lab("thesis-a", controller=Controller("127.0.0.1", running.port))
        for switch, ports in (("s1", (1, TO_OTHERS)), ("s2", (1, 2)), ("s6", (1, TO_OTHERS))):
            for here, there in (ports, ports[::-1]):
                ofctl(lab, "add-flow", switch, f"cookie=0x99,priority=5,in_port={here},actions={there}")
        sink(lab)
        found(lab, running, eventually)
        assert filled(lab, 4000) == [0]
        src, dst = (lab.host(name).addresses[0] for name in ("src", "dst"))
        made = running.ask("POST", "path-sets", {"source": src, "sink": dst})
        number = made["id"]
        place = [path["switches"] for path in made["paths"]].index(["1", "4", "6"])
        running.ask("POST", f"path-sets/{number}/streams", {"ports": [4000], "path": place})
        assert filled(lab, 4000) == [2]
        assert filled(lab, 4001) == [0]
        running.ask("DELETE", f"path-sets/{number}")
        assert filled(lab, 4000) == [0]
        others = [line for line in ofctl(lab, "dump-flows", "s1").splitlines() if "actions" in line]
        assert sum("cookie=0x99," in line for line in others) == 2
        assert all("actions=CONTROLLER" in line for line in others if "cookie=0x99," not in line)
