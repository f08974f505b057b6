"""`mpx controller status`, `paths` and `flows`, of a controller that steers a real Open vSwitch."""

import json
from collections.abc import Callable
from pathlib import Path

from mpx_command import copied, mpx
from mpx_lab.lab import Lab
from mpx_lab.plan import Controller
from running_controller import Running, controller
from steered import MANY, Eventually, Make, ready, send


def told(running: Running, *words: str) -> str:
    ended = mpx("controller", *words, "--url", running.urls["rest"])
    copied(ended)
    return ended.out


def test_what_it_knows_and_what_its_switches_count(
    make_lab: Make, sink: Callable[[Lab], None], eventually: Eventually, tmp_path: Path
) -> None:
    with controller(tmp_path / "state.json") as running:
        assert "0 switches connected" in told(running, "status")
        assert told(running, "paths") == told(running, "flows") == "no path sets\n"
        lab = make_lab("thesis-a", controller=Controller("127.0.0.1", running.port))
        sink(lab)
        ready(lab, running, eventually, tmp_path)
        src, dst = (lab.host(name).addresses[0] for name in ("src", "dst"))
        number = running.ask("POST", "path-sets", {"source": src, "sink": dst})["id"]
        running.ask("POST", f"path-sets/{number}/streams", {"ports": [4000, 4001]})
        send(lab, 4001)

        status = told(running, "status")
        assert "6 switches connected" in status and "1 path set with 2 streams" in status
        assert f"  {src}" in status and "100 Mbit/s" in status
        assert all(0 < switch["answers_s"] < 5 for switch in running.get("topology")["switches"])
        paths = told(running, "paths").splitlines()
        assert paths[0].startswith(
            f"path set {number} of local: {src} -> {dst}, 4 streams predicted, at most 400"
        )
        assert paths[3].split() == [
            "1",
            "1-3-6",
            "100",
            "Mbit/s",
            *paths[3].split()[4:-3],
            "1",
            "1",
            "source:4001",
        ]

        def counted() -> list[dict]:
            (flows,) = json.loads(told(running, "flows", "--json"))
            assert [each["stream"] for each in flows["streams"]] == ["source:4000", "source:4001"]
            return [each["entries"] for each in flows["streams"]]

        def all_is_counted() -> bool:
            return all(each["bytes"] >= MANY for each in counted()[1] if each["to"] == "sink")

        eventually(all_is_counted)  # Open vSwitch takes over what its datapath has counted now and then
        idle, busy = counted()
        assert {(each["switch"], each["to"]) for each in busy} == {
            (switch, to) for switch in "136" for to in ("source", "sink")
        }
        assert all((each["bytes"] >= MANY) == (each["to"] == "sink") for each in busy)
        assert all(each["packets"] > 0 for each in busy) and not any(each["bytes"] for each in idle)
        assert "source:4001" in told(running, "flows", str(number))
