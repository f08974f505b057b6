"""`mpx.probe` from Python: results, cancelling, several at once."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from interop.counting_server import Counting
from interop.probed import read
from sites import Site, opened

import mpx as api

pytestmark = pytest.mark.peers


def test_what_was_measured_is_told_though_the_noise_is_not_to_be_had(tmp_path: Path) -> None:
    """Here as there is no descriptor left for it."""
    program = (
        "import json, os, resource, sys, mpx\n"
        "from mpx.probing import api\n"
        "room = len(os.listdir('/proc/self/fd')) - 1 + 3\n"  # without that of the listing itself
        "resource.setrlimit(resource.RLIMIT_NOFILE, (room, room))\n"
        "print(json.dumps(mpx.probe(sys.argv[1], window_s=0.3).as_dict()))\n"
    )
    with opened("mpx serve", tmp_path) as far:
        words = [sys.executable, "-c", program, far.url]
        done = subprocess.run(words, check=True, capture_output=True, text=True)
    told = read(done.stdout)
    assert (told["way"]["kind"], told["way"]["noise_s"], told["lost"]) == ("echo", None, 0)
    assert "Too many open files" in told["way"]["noise_how"]


def test_the_python_api(far: Site, capfd: pytest.CaptureFixture[str]) -> None:
    result: api.ProbeResult = api.probe(far.url, window_s=0.3)
    assert (result.summary.lost, result.error, result.status) == (0, None, "done")
    assert 1 <= result.summary.sent <= 3
    assert result.as_dict()["target"] == far.url
    assert capfd.readouterr() == ("", "")


def test_the_python_api_is_cancelled(eventually: Callable[..., None]) -> None:
    cancel = threading.Event()
    failures: list[api.MpxError] = []

    def probe(target: str) -> None:
        try:
            api.probe(target, window_s=3600, cancel=cancel)
        except api.MpxError as error:
            failures.append(error)

    with Counting() as server:
        probing = threading.Thread(target=probe, args=(server.target,))
        probing.start()
        eventually(lambda: server.asked > 10)
        cancel.set()
        probing.join()
        probe(server.target)
    first, second = failures
    assert isinstance(first, api.Interrupted)
    assert isinstance(second, api.Interrupted)
    assert first.result is not None
    assert first.result.summary.sent > 3
    assert all(probe.rtt_s is not None for probe in first.result.probes)
    assert second.result is None
    assert second.report is None


def test_two_at_once_and_nothing_stays(far: Site, eventually: Callable[..., None]) -> None:
    threads, descriptors = threading.active_count(), len(os.listdir("/proc/self/fd"))
    results: list[api.ProbeResult] = []
    probing = [
        threading.Thread(target=lambda: results.append(api.probe(far.url, window_s=0.5))) for _ in range(4)
    ]
    for thread in probing:
        thread.start()
    for thread in probing:
        thread.join()
    assert [result.summary.lost for result in results] == [0] * 4
    eventually(lambda: threading.active_count() <= threads)
    eventually(lambda: len(os.listdir("/proc/self/fd")) <= descriptors)
