"""A run in a lab is judged by all that the lab counts, and keeps the logs of its links."""

import importlib.resources
import json
import os
import re
import resource
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
from mpx_lab.emulator.link_log import read_log
from mpx_lab.judged import judged
from mpx_lab.lab import Lab
from mpx_lab.namespace import inside
from mpx_lab.record import Run
from mpx_lab.record_reader import RecordedRun
from mpx_lab.shape import Direction
from mpx_lab.topology import Link, Topology
from mpx_lab.traffic.background import Background
from traces import traces

from mpx.errors import UsageError

Make = Callable[..., Lab]
Eventually = Callable[..., None]
SCHEMA = json.loads(importlib.resources.files("mpx_lab").joinpath("run.schema.json").read_text())
PAIR = Topology(
    "pair",
    ("src1",),
    ("dst1",),
    (
        Link("left", "right", "wan", rate_bps=50_000_000, delay_s=0.001, queue_bytes=100_000),
        Link("src1", "left"),
        Link("right", "dst1"),
    ),
    ("left", "right"),
)


def udp(lab: Lab, run: Run) -> Background:
    source, sink = lab.host("src1"), lab.host("dst1")
    return Background("udp(rate=1Mbit/s)", "udp", source, sink, sink.addresses[0], run.flows, run.epoch_s)


def test_a_run_is_judged_by_links_hosts_switches_and_generators(
    make_lab: Make, tmp_path: Path, eventually: Eventually
) -> None:
    lab, folder = make_lab(PAIR), tmp_path / "run"
    with Run(folder, "test", {}) as run, judged(lab, run), udp(lab, run):
        eventually(lambda: len(RecordedRun(folder, {}).goodput("udp")) > 5)
    about = RecordedRun.open(folder).about
    jsonschema.validate(about, SCHEMA)
    assert about["status"] == "done"
    assert about["versions"]["open-vswitch"].startswith("ovs-vswitchd")
    measures = about["validity"]["measures"]
    assert [link["name"] for link in measures["links"]] == ["wan a-to-b", "wan b-to-a"]
    assert measures["links"][0]["delivered"] > 0
    assert measures["given_up"].keys() == {"udp"}
    assert measures["lost"] == {}
    log = [sample for sample in read_log(run.links / "wan.csv") if sample.direction is Direction.A_TO_B]
    assert log[-1].delivered.frames > log[0].delivered.frames
    assert [file.name for file in run.links.iterdir()] == ["wan.csv"]


def test_the_example_of_the_documentation(
    make_lab: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "lab-format.md"
    (example,) = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(example, {"lab": make_lab(PAIR)})
    folder = tmp_path / "run-1"
    run = RecordedRun.open(folder)
    assert run.about["validity"]["measures"]["given_up"].keys() == {"udp"}
    assert read_log(folder / "links" / "wan.csv")
    assert {file.stem for file in (folder / "rtt").iterdir()} == {"wan"}


def test_frames_that_a_switch_did_not_read_in_time_make_it_invalid(
    make_lab: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mpx_lab.packet_sockets.ROOM_BYTES", 4096)
    lab = make_lab(PAIR)
    daemon = int((lab.folder / "ovs" / "ovs-vswitchd.pid").read_text())
    sending = inside(lab.host("src1").netns, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    with sending, Run(tmp_path / "run", "test", {}) as run, judged(lab, run):
        os.kill(daemon, signal.SIGSTOP)
        for _ in range(200):
            sending.sendto(bytes(1000), (lab.host("dst1").addresses[0], 9))
        os.kill(daemon, signal.SIGCONT)
    assert run.validity is not None
    assert not run.validity.valid
    assert any(reason.endswith("at switches") for reason in run.validity.reasons)


def test_a_link_whose_log_ends_too_early_makes_it_invalid(
    make_lab: Make, tmp_path: Path, eventually: Eventually
) -> None:
    lab = make_lab(PAIR)
    (emulator,) = (line for line in traces(lab.id) if "--control" in line)
    size_bytes = (lab.folder / "wan.csv").stat().st_size
    with Run(tmp_path / "run", "test", {}) as run, judged(lab, run), udp(lab, run):
        pid = int(emulator.split()[1].rstrip(":"))
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (size_bytes, size_bytes))
        eventually(lambda: lab.link("wan").stats().log_failed)
    assert run.validity is not None
    assert not run.validity.valid
    assert any("the log of wan could not be continued" in reason for reason in run.validity.reasons)


def test_a_generator_that_still_runs_cannot_be_judged(make_lab: Make, tmp_path: Path) -> None:
    lab, folder = make_lab(PAIR), tmp_path / "run"
    with (
        pytest.raises(UsageError, match="generator 'udp' has not been stopped"),
        Run(folder, "test", {}) as run,
        udp(lab, run),
        judged(lab, run),
    ):
        pass
    assert not RecordedRun.open(folder).valid
