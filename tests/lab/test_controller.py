"""The controller with a real Open vSwitch: which links the bytes of real connections take."""

import urllib.request
from collections.abc import Callable
from pathlib import Path

from mpx_lab.lab import Lab
from mpx_lab.plan import Controller
from running_controller import controller
from steered import Eventually, Make, filled, ready


def test_streams_take_the_paths_they_are_put_on(
    make_lab: Make, sink: Callable[[Lab], None], eventually: Eventually, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    with controller(tmp_path / "state.json", 0, "", "-v", errors=log) as running:
        lab = make_lab("thesis-a", controller=Controller("127.0.0.1", running.port))
        sink(lab)
        ready(lab, running, eventually, tmp_path)
        src, dst = (lab.host(name).addresses[0] for name in ("src", "dst"))
        told = running.rpc.AssignMultipath({"src_ip": src, "dst_ip": dst, "path_num": 0})
        number = told["path_set_id"]
        assert told["tcp_num"] == 4
        for port in range(4000, 4004):
            running.rpc.MakePath({"path_set_id": number, "tcp_port_num": port})
        assert [filled(lab, port) for port in range(4000, 4004)] == [[0], [1], [2], [3]]
        assert filled(lab, 4999) == [0]

        with urllib.request.urlopen(f"{running.urls['rest']}/events", timeout=30) as events:
            lab.link("s1-s4").set_up(False)
            told = next(line for line in events if b"rerouted" in line).decode()
        assert f'"path_set": {number}' in told and "source:4002 on path" in told and "1:3-4:1" in told
        eventually(lambda: len(running.get("topology")["links"]) == 14)
        others = filled(lab, 4002)
        assert others and others != [2]
        lab.link("s1-s4").set_up(True)
        eventually(lambda: len(running.get("topology")["links"]) == 16)
        assert filled(lab, 4002) == [2]

        running.ask("DELETE", f"path-sets/{number}")
        assert [filled(lab, port) for port in range(4000, 4004)] == [[0]] * 4
    for reason in (
        "widest-apart chose 4 paths for 400 Mbit/s (max-flow 400 Mbit/s); more would add at most 0%",
        "path 3 (1-5-6): n = max(1, a B R) = 1 with a = ",
        "placed source:4002 on path 2 (1-4-6)",
        "rerouted: source:4002 on path",
        "released",
    ):
        assert reason in log.read_text()


def test_nobody_needs_the_controller_to_go_on(
    make_lab: Make, sink: Callable[[Lab], None], eventually: Eventually, tmp_path: Path
) -> None:
    state = tmp_path / "state.json"
    with controller(state) as running:
        port = running.port
        lab = make_lab("thesis-a", controller=Controller("127.0.0.1", port))
        sink(lab)
        ready(lab, running, eventually, tmp_path)
        src, dst = (lab.host(name).addresses[0] for name in ("src", "dst"))
        made = running.ask("POST", "path-sets", {"source": src, "sink": dst})
        ports = list(range(4000, 4004))
        placed = running.ask("POST", f"path-sets/{made['id']}/streams", {"ports": ports})
        assert placed == {"paths": [0, 1, 2, 3]}
    assert [filled(lab, port) for port in ports] == [[0], [1], [2], [3]]
    assert filled(lab, 4999) == [0]
    with controller(state, port) as running:
        assert [filled(lab, port) for port in ports] == [[0], [1], [2], [3]]
        eventually(lambda: len(running.get("topology")["links"]) == 16)
        assert running.get(f"path-sets/{made['id']}")["ports"] == {
            f"source:{p}": n for n, p in enumerate(ports)
        }
        assert [filled(lab, port) for port in [*ports, 4999]] == [[0], [1], [2], [3], [0]]
