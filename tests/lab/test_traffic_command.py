"""`mpx lab traffic`: a generator from the shell, its record, and its end."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from mpx_command import command, mpx
from mpx_lab.lab import Lab
from mpx_lab.record_reader import RecordedRun
from mpx_lab.topologies import named
from mpx_lab.topology import Link, Topology
from traces import traces

Eventually = Callable[..., None]


@pytest.fixture(scope="module")
def running(lab_root: None) -> Iterator[str]:
    """The ID of one lab for all tests here."""
    with Lab.up(named("path"), f"t{os.getpid()}-traffic") as lab:
        yield lab.id


def test_traffic_from_the_shell(running: str, tmp_path: Path) -> None:
    words = ["src", "dst", "udp(rate=2Mbit/s)", "--for", "1s"]
    ended = mpx("lab", "traffic", "--lab", running, *words, "--folder", tmp_path / "run")
    assert ended.code == 0 and ended.out.startswith("udp(rate=2Mbit/s) from src to dst: "), ended
    recorded = RecordedRun.open(tmp_path / "run")
    assert recorded.about["status"] == "done" and recorded.flows() == ["traffic"]
    assert sum(sample.size_bytes for sample in recorded.goodput("traffic")) > 0
    again = mpx("lab", "traffic", "--lab", running, *words, "--folder", tmp_path / "run")
    assert again.code == 2 and "is not empty" in again.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_traffic_ends_when_it_is_told_to(
    running: str, tmp_path: Path, eventually: Eventually, number: int
) -> None:
    folder = tmp_path / "run"
    words = command("lab", "traffic", "--lab", running, "src", "dst", "tcp()", "--folder", folder)
    with subprocess.Popen(
        ["env", "--default-signal=INT", *words], stdout=subprocess.PIPE, text=True
    ) as process:
        eventually((folder / "flows" / "traffic.csv").exists)
        process.send_signal(number)
        out, _ = process.communicate(timeout=240)
    assert process.returncode == 0 and out.startswith("tcp() from src to dst: ")
    assert RecordedRun.open(folder).about["status"] == "done"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["src", "dst", "nothing()"], "nothing"),
        (["src", "nobody", "tcp()"], "no host 'nobody'"),
        (["src", "dst", "tcp()", "--for", "5"], "for example"),
        (["src", "dst", "tcp()", "--for", "0s"], "above zero"),
        (["src", "src", "tcp()"], "share no network"),
    ],
)
def test_traffic_that_cannot_be(running: str, words: list[str], message: str) -> None:
    ended = mpx("lab", "traffic", "--lab", running, *words)
    assert ended.code == 2 and message in ended.err, ended


def test_ctrl_c_while_it_starts_ends_it_in_good_order(running: str, eventually: Eventually) -> None:
    """A terminal tells all of a group."""
    words = command("lab", "traffic", "--lab", running, "src", "dst", "udp(rate=1Mbit/s)")
    heeding = ["env", "--default-signal=INT", *words]
    with subprocess.Popen(heeding, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        eventually(lambda: any("mpx_lab.traffic.echo" in line for line in traces(running)))
        os.killpg(process.pid, signal.SIGINT)
        out, _ = process.communicate(timeout=240)
    assert process.returncode == 0 and out.startswith("udp(rate=1Mbit/s) from src to dst: "), out


def test_it_goes_to_the_address_that_is_reached(make_lab: Callable[..., Lab]) -> None:
    lab = make_lab(Topology("two", ("a", "c"), ("b",), (Link("a", "b"), Link("c", "b"))))
    for source, sink in (("c", "b"), ("b", "c"), ("a", "b")):
        ended = mpx("lab", "traffic", "--lab", lab.id, source, sink, "tcp()", "--for", "200ms")
        assert ended.code == 0, ended
    assert "share no network" in mpx("lab", "traffic", "--lab", lab.id, "a", "c", "tcp()").err


def test_a_lab_that_is_taken_down_meanwhile(make_lab: Callable[..., Lab], eventually: Eventually) -> None:
    lab = make_lab("path")
    words = command("lab", "traffic", "--lab", lab.id, "src", "dst", "udp(rate=1Mbit/s)")
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        eventually(lambda: any("mpx_lab.traffic.sender" in line for line in traces(lab.id)))
        lab.down()
        _, said = process.communicate(timeout=240)
    assert (process.returncode, said) == (1, f"mpx: the lab '{lab.id}' was taken down meanwhile\n")
    assert traces(lab.id) == []
