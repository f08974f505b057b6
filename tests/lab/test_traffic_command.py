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
    assert again.code == 2 and "holds something already" in again.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_traffic_ends_when_it_is_told_to(
    running: str, tmp_path: Path, eventually: Eventually, number: int
) -> None:
    folder = tmp_path / "run"
    words = command("lab", "traffic", "--lab", running, "src", "dst", "tcp()", "--folder", folder)
    with subprocess.Popen(
        ["env", "--default-signal=INT", *words], stdout=subprocess.PIPE, text=True
    ) as process:
        eventually((folder / "flows" / "traffic.csv").exists, 20)
        process.send_signal(number)
        out, _ = process.communicate(timeout=30)
    assert process.returncode == 0 and out.startswith("tcp() from src to dst: ")
    assert RecordedRun.open(folder).about["status"] == "done"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["src", "dst", "nothing()"], "nothing"),
        (["src", "nobody", "tcp()"], "no host 'nobody'"),
        (["src", "dst", "tcp()", "--for", "5"], "for example"),
    ],
)
def test_traffic_that_cannot_be(running: str, words: list[str], message: str) -> None:
    ended = mpx("lab", "traffic", "--lab", running, *words)
    assert ended.code == 2 and message in ended.err, ended
