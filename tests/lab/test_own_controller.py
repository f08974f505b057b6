"""`mpx lab up NAME --controller`: a controller that the lab runs, asked from within its hosts."""

import json
import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mpx_command import command, mpx
from mpx_lab import controller_process, own_controller
from mpx_lab.lab import Lab
from mpx_lab.own_controller import OWN
from mpx_lab.state import LabError
from mpx_lab.topologies import named
from steered import filled
from traces import devices, traces
from victims import ALL_KINDS

from mpx.errors import UsageError

Make = Callable[..., Lab]
Eventually = Callable[..., None]
ROOT = Path(__file__).resolve().parents[2]
# Says the status and the body of the answer; its address is the host's own choice, or FROM.
ASK = """
import http.client, sys, urllib.parse
method, url, body, source = sys.argv[1:]
there = urllib.parse.urlsplit(url)
asking = http.client.HTTPConnection(there.hostname, there.port, 30, (source, 0) if source else None)
asking.request(method, there.path, body or None, {"Content-Type": "application/json"})
answer = asking.getresponse()
print(answer.status)
print(answer.read().decode())
"""
# Calls each of some methods with its struct, and says what it returns.
CALL = """
import json, sys, xmlrpc.client
there = xmlrpc.client.ServerProxy(sys.argv[1])
for method, told in json.loads(sys.argv[2]):
    try:
        print(json.dumps(getattr(there, method)(told)))
    except xmlrpc.client.Fault as fault:
        print(json.dumps(fault.faultString))
"""


@pytest.fixture(scope="module")
def running(lab_root: None) -> Iterator[Lab]:
    """Topology A of the thesis, as one who types the command has it."""
    lab_id = f"t{os.getpid()}-own"
    before = devices()
    ended = mpx("lab", "up", "thesis-a", "--lab", lab_id, "--controller")
    assert (ended.code, ended.err) == (0, "")
    assert "all switches are connected to the controller" in ended.out
    assert "controller: REST http://10.254.0.254:6680, XML-RPC http://10.254.0.254:6680/RPC2" in ended.out
    assert devices() == before
    yield Lab.attach(lab_id)
    assert any("--insecure" in line for line in traces(lab_id))
    assert mpx("lab", "down", "--lab", lab_id).code == 0
    assert not traces(lab_id)


def urls(lab: Lab) -> dict[str, str]:
    told: dict[str, str] = json.loads(mpx("lab", "status", "--json", "--lab", lab.id).out)["controller"]
    return told


def ask(
    lab: Lab, host: str, method: str, what: str, body: object = None, source: str = ""
) -> tuple[int, Any]:
    """Ask from within a host; return the status and what is answered."""
    words = [method, f"{urls(lab)['rest']}/{what}", json.dumps(body) if body else "", source]
    asked = lab.host(host).run(
        [sys.executable, "-c", ASK, *words], check=True, stdout=subprocess.PIPE, text=True, timeout=60
    )
    status, _, answer = asked.stdout.partition("\n")
    return int(status), json.loads(answer) if answer.strip() else None


def call(lab: Lab, host: str, *calls: tuple[str, dict[str, object]]) -> list[Any]:
    """Call by XML-RPC from within a host."""
    words = [sys.executable, "-c", CALL, urls(lab)["xmlrpc"], json.dumps(calls)]
    asked = lab.host(host).run(words, check=True, stdout=subprocess.PIPE, text=True, timeout=60)
    return [json.loads(line) for line in asked.stdout.splitlines()]


def test_status_tells_where_it_is(running: Lab) -> None:
    told = json.loads(mpx("lab", "status", "--json", "--lab", running.id).out)
    assert told["controller"] == {
        "openflow": "tcp:127.0.0.1:6653",
        "rest": "http://10.254.0.254:6680",
        "xmlrpc": "http://10.254.0.254:6680/RPC2",
    }
    assert told["connected"] == {f"s{n}": True for n in range(1, 7)}


def test_what_is_asked_for_as_in_the_thesis_takes_four_paths(
    running: Lab,
    sink: Callable[[Lab], None],
) -> None:
    src, dst = (running.host(name).addresses[0] for name in ("src", "dst"))
    ends: dict[str, object] = {"src_ip": src, "dst_ip": dst, "path_num": 4}
    (assigned,) = call(running, "src", ("AssignMultipath", ends))
    assert assigned["tcp_num"] == 4
    number = assigned["path_set_id"]
    ports = range(4000, 4004)
    made = [("MakePath", {"path_set_id": number, "tcp_port_num": port}) for port in ports]
    assert call(running, "src", *made) == [{}] * 4
    sink(running)
    assert [filled(running, port) for port in ports] == [[0], [1], [2], [3]]
    status, told = ask(running, "src", "GET", f"path-sets/{number}")
    assert (status, told["ports"]) == (200, {f"source:{p}": n for n, p in enumerate(ports)})
    assert [path["rate_bps"] for path in told["paths"]] == [100e6] * 4


@pytest.mark.parametrize("host", ["src", "dst"])
def test_hosts_are_known_by_their_addresses_and_ask_for_paths_of_their_own(running: Lab, host: str) -> None:
    ends = dict(zip(("source", "sink"), (running.host(n).addresses[0] for n in ("src", "dst")), strict=True))
    status, told = ask(running, host, "POST", "path-sets", {**ends, "paths": 4})
    assert status == 201 and len(told["paths"]) == 4
    placed = ask(running, host, "POST", f"path-sets/{told['id']}/streams", {"ports": [1, 2, 3, 4]})
    assert placed == (200, {"paths": [0, 1, 2, 3]})
    other = "dst" if host == "src" else "src"
    status, refused = ask(running, other, "DELETE", f"path-sets/{told['id']}")
    assert status == 403 and "another owner" in refused["detail"]
    assert ask(running, host, "DELETE", f"path-sets/{told['id']}") == (204, None)


def test_the_path_of_another_host_is_refused(make_lab: Make) -> None:
    lab = make_lab("dumbbell", controller=OWN)
    others = [lab.host(name).addresses[0] for name in ("src2", "dst1")]
    ends = dict(zip(("source", "sink"), others, strict=True))
    status, refused = ask(lab, "src1", "POST", "path-sets", ends)
    assert status == 403 and "10.0.0.1 may request paths of its own address only" in refused["detail"]
    told: dict[str, object] = {"src_ip": others[0], "dst_ip": others[1], "path_num": 1}
    (refused,) = call(lab, "src1", ("AssignMultipath", told))
    assert "of its own address only" in refused
    assert "path_set_id" in call(lab, "src2", ("AssignMultipath", told))[0]


def test_a_host_with_several_addresses_asks_from_one_that_the_controller_knows(make_lab: Make) -> None:
    lab = make_lab(ALL_KINDS, controller=OWN)
    (_, _, at_switch, at_switch6), (_, _, other, _) = (lab.host(name).addresses for name in "ab")
    ends = {"source": at_switch, "sink": other}
    assert ask(lab, "a", "POST", "path-sets", ends)[0] == 201
    status, refused = ask(lab, "a", "POST", "path-sets", ends, lab.host("a").addresses[0])
    assert status == 403 and refused["detail"].startswith(lab.host("a").addresses[0])
    known = [
        address for host in ask(lab, "a", "GET", "topology")[1]["hosts"] for address in host["addresses"]
    ]
    assert {at_switch, at_switch6, other} <= set(known)


def test_the_way_to_it_is_none_to_other_hosts(running: Lab) -> None:
    way = running.host("src").run(
        ["ip", "route", "get", "10.254.0.254"], check=True, stdout=subprocess.PIPE, text=True
    )
    assert "10.254.0.254 dev mgmt src 10.0.0.1 " in way.stdout
    inside = ["ip", "-n", f"mpxlab.{running.id}.switches", "route", "get"]
    there = ["10.0.0.2", "from", "10.0.0.1", "iif", "mgmt.1"]
    assert subprocess.run([*inside, "10.0.0.2"], check=False, stdout=subprocess.DEVNULL).returncode == 0
    forwarded = subprocess.run([*inside, *there], check=False, capture_output=True, text=True)
    assert "No route to host" in forwarded.stderr


def test_one_that_ended_is_a_fault_with_the_end_of_its_log(make_lab: Make, eventually: Eventually) -> None:
    lab = make_lab(ALL_KINDS, controller=OWN)
    assert not lab.faults()
    (line,) = (line for line in traces(lab.id) if "--insecure" in line)
    os.kill(int(line.split()[1].rstrip(":")), signal.SIGKILL)
    eventually(lab.faults)
    (fault,) = lab.faults()
    assert fault.startswith("the lab's controller has ended; its log ends: ")
    assert "switch 1 is connected" in fault


def test_one_that_does_not_start_is_told_and_nothing_is_left(
    lab_id: str, lab_root: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_controller, "CALLERS", "anybody")
    with pytest.raises(LabError, match=r"controller did not start; its log ends: .*allow_from.*'anybody'"):
        Lab.up(named("dumbbell"), lab_id, controller=OWN)
    assert not traces(lab_id)


def test_without_what_it_needs_nothing_is_built(
    lab_id: str, lab_root: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert [each.partition(">")[0].replace("-", "_") for each in told["controller"]] == list(
        controller_process.NEEDS
    )
    monkeypatch.setitem(sys.modules, "os_ken", None)
    with pytest.raises(UsageError, match=r"needs os_ken; install mpx .* pip install '\.\[controller\]'"):
        Lab.up(named("dumbbell"), lab_id, controller=OWN)
    assert not traces(lab_id)


def test_an_interrupted_up_leaves_nothing(lab_id: str, lab_root: None, eventually: Eventually) -> None:
    words = command("lab", "up", "thesis-a", "--lab", lab_id, "--controller")
    heeding = ["env", "--default-signal=INT", *words]
    with subprocess.Popen(heeding, stderr=subprocess.PIPE) as process:
        eventually(lambda: any("--insecure" in line for line in traces(lab_id)))
        process.send_signal(signal.SIGINT)
        assert process.wait(240) == 130
    assert not traces(lab_id)
