"""The model that comes with mpx, beside real streams of the kernel: `mpx probe` names them, a copy switches.

What is asked for is the group (nobody, CUBIC only, any BBR), of most of three windows: how often the model is
right is for the benches to say.
"""

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from filecmp import cmp
from pathlib import Path

import pytest
from mpx_lab.lab import Lab
from mpx_lab.namespace import inside
from mpx_lab.topology import Topology, wan
from mpx_lab.traffic.background import Background

from mpx.mix import ANY_BBR, CUBIC_ONLY, NOBODY
from mpx.serve import Server

pytestmark = [pytest.mark.alone, pytest.mark.slow]
RATE_BPS = 40_000_000
PAIR = Topology("pair", ("src",), ("dst",), (wan("src", "dst", RATE_BPS, 0.040),))
WINDOWS = 3
SIZE_BYTES = 150_000_000
SETTLED_BYTES = 25_000_000  # of the background: five seconds at the full rate, and more


@pytest.fixture
def lab(make_lab: Callable[..., Lab]) -> Lab:
    return make_lab(PAIR)


@pytest.fixture
def served(tmp_path: Path) -> Path:
    folder = tmp_path / "served"
    folder.mkdir()
    return folder


@pytest.fixture
def server(lab: Lab, served: Path) -> Iterator[Server]:
    address = lab.host("dst").addresses[0]

    def serve() -> Server:
        return Server(served, host=address, writable=True, insecure=True, allow_from=["10.0.0.0/8"])

    with inside(lab.host("dst").netns, serve) as serving:
        yield serving


@contextmanager
def beside(lab: Lab, spec: str, folder: Path, eventually: Callable[..., None]) -> Iterator[None]:
    """Have a background that has come up."""
    if not spec:
        yield
        return
    source, sink, link = lab.host("src"), lab.host("dst"), lab.link("wan")
    with Background(spec, "beside", source, sink, sink.addresses[1], folder, time.monotonic()):
        eventually(lambda: link.stats().a_to_b.delivered.bytes > SETTLED_BYTES, within_s=60)
        yield


@pytest.mark.parametrize(
    ("spec", "group"),
    [("", NOBODY), ("tcp(congestion=cubic)", CUBIC_ONLY), ("tcp(congestion=bbr)", ANY_BBR)],
    ids=["nobody", "CUBIC", "BBR"],
)
def test_probe_names_who_is_there(
    lab: Lab, server: Server, tmp_path: Path, spec: str, group: str, eventually: Callable[..., None]
) -> None:
    command = [sys.executable, "-m", "mpx", "probe", "--json", f"{server.host}:{server.port}"]
    said: list[str] = []
    with beside(lab, spec, tmp_path, eventually):
        for _ in range(WINDOWS):
            done = lab.host("src").run(command, check=True, stdout=subprocess.PIPE)
            groups = json.loads(done.stdout)["mix"]["groups"]
            said.append(max(groups, key=groups.__getitem__))
    assert Counter(said).most_common(1)[0][0] == group, said


def test_a_copy_switches_to_bbr_beside_bbr_and_arrives_whole(
    lab: Lab, server: Server, served: Path, tmp_path: Path, eventually: Callable[..., None]
) -> None:
    source, report = tmp_path / "source", tmp_path / "report.json"
    source.write_bytes(bytes(range(250)) * (SIZE_BYTES // 250))
    command = [sys.executable, "-m", "mpx", "copy", "-q", "--report", str(report)]
    command += [str(source), f"ftp://{server.host}:{server.port}/there"]
    with beside(lab, "tcp(congestion=bbr)", tmp_path, eventually):
        lab.host("src").run(command, check=True)
    assert cmp(source, served / "there", shallow=False)
    timeline = json.loads(report.read_text())["timeline"]
    assert timeline[0]["congestion"] == "cubic" and timeline[-1]["congestion"] == "bbr", [
        (round(event["t_s"]), event["reason"]) for event in timeline
    ]
