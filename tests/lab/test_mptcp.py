"""Connections of Multipath TCP that Linux makes, in a real Open vSwitch: which links their subflows take."""

import io
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import mptcp_steered
import pytest
from mptcp_steered import BETWEEN, CASES, SHARE, Eventually, spreading, steering
from mpx_command import command
from mpx_lab.lab import Lab
from mpx_lab.mpx_server import mpx_server
from mpx_lab.simulator.machine import run_simulated
from running_controller import controller
from sites import make
from smoc.addresses import give_addresses


@pytest.fixture
def at_the_end() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.mark.long  # in one of some thirty runs it stalls for good in simulated time, too
@pytest.mark.parametrize("case", CASES)
def test_in_simulated_time(kernel: Path, tmp_path: Path, case: str) -> None:
    errors = io.BytesIO()
    words = [sys.executable, mptcp_steered.__file__, case, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    code = run_simulated(kernel, words, environment, folder=tmp_path, errors=errors)
    assert code == 0, errors.getvalue().decode()


def test_a_copy_and_back_over_four_paths_with_one_stream(
    make_lab: Callable[..., Lab], eventually: Eventually, at_the_end: ExitStack, tmp_path: Path
) -> None:
    served, report = tmp_path / "served", tmp_path / "report.json"
    served.mkdir()
    make(tmp_path / "file", 40 * SHARE)
    with controller(tmp_path / "state.json") as running:
        lab = spreading(make_lab, running, eventually, at_the_end, tmp_path)
        give_addresses(lab, "dst", 4)
        url = at_the_end.enter_context(mpx_server(lab.host("dst"), served))
        for names in ((tmp_path / "file", f"{url}/file"), (f"{url}/file", tmp_path / "back")):
            before = [lab.link(name).stats() for name in BETWEEN]
            words = ("copy", "-q", "--transport", "mptcp", "--streams", "1", "--report", report, *names)
            lab.host("src").run(command(*words), check=True, timeout=90)
            after = [lab.link(name).stats() for name in BETWEEN]
            carried = [
                now.a_to_b.delivered.bytes
                + now.b_to_a.delivered.bytes
                - was.a_to_b.delivered.bytes
                - was.b_to_a.delivered.bytes
                for was, now in zip(before, after, strict=True)
            ]
            assert min(carried) > SHARE, carried
            (stream,) = json.loads(report.read_text())["mptcp"]
            assert stream == {"in_use": True, "subflows": 4}
        sums = {file.read_bytes() for file in (tmp_path / "file", served / "file", tmp_path / "back")}
        assert len(sums) == 1
        eventually(lambda: not steering(lab))
