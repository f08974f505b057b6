"""Real transfers across a lab, byte for byte, with the link cut and mended on the way."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from install_peers import find_peer
from mpx_lab.lab import Lab
from mpx_lab.stock_server import stock_server
from mpx_lab.topology import Topology, wan
from random_bytes import random_bytes

SIZE_BYTES = 12_000_000
WITHIN_S = 120
PAIR = Topology("pair", ("src",), ("dst",), (wan("src", "dst", 40_000_000, 0.020),))


@pytest.fixture
def lab(make_lab: Callable[..., Lab]) -> Lab:
    find_peer("globus-gridftp-server")
    return make_lab(PAIR)


@pytest.fixture
def served(lab: Lab, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The URL of a folder that a stock server serves at the other end, and the folder."""
    folder = tmp_path / "served"
    folder.mkdir()
    folder.chmod(0o777)
    with stock_server(lab.host("dst"), folder) as url:
        yield f"{url}{folder}", folder


def mpx_command(source: str, target: str) -> list[str]:
    return [sys.executable, "-m", "mpx", "copy", "-q", source, target]


def guc_command(source: str, target: str) -> list[str]:
    def url(name: str) -> str:
        return name if name.startswith("ftp:") else f"file://{name}"

    return [find_peer("globus-url-copy"), "-p", "4", url(source), url(target)]


def digest(name: Path) -> str:
    return hashlib.sha256(name.read_bytes()).hexdigest()


def test_the_report_names_the_congestion_control_of_the_route(
    lab: Lab, served: tuple[str, Path], tmp_path: Path
) -> None:
    url, _ = served
    (tmp_path / "a").write_bytes(b"x" * 1000)
    for name in ("cubic", "reno"):  # neither need be this kernel's default
        lab.host("src").set_route(congestion=name)
        report = tmp_path / f"{name}.json"
        command = [*mpx_command(str(tmp_path / "a"), f"{url}/{name}"), "--congestion", "kernel"]
        command += ["--report", str(report)]
        lab.host("src").run(command, check=True)
        assert {event["congestion"] for event in json.loads(report.read_text())["timeline"]} == {name}


@pytest.mark.parametrize("up", [True, False], ids=["up", "down"])
@pytest.mark.parametrize("tool", [mpx_command, guc_command], ids=["mpx", "globus-url-copy"])
def test_a_copy_survives_a_cut_of_the_link(
    lab: Lab, served: tuple[str, Path], tmp_path: Path, eventually: Callable[..., None], tool, up: bool
) -> None:
    url, folder = served
    here, there = tmp_path / "here", folder / "there"
    original, made = (here, there) if up else (there, here)
    original.write_bytes(random_bytes(SIZE_BYTES))
    original.chmod(0o644)
    source, target = (str(here), f"{url}/there") if up else (f"{url}/there", str(here))
    link = lab.link("wan")

    def passed() -> int:
        stats = link.stats()
        return stats.a_to_b.delivered.bytes + stats.b_to_a.delivered.bytes

    with lab.host("src").popen(tool(source, target), stderr=subprocess.PIPE) as process:
        try:
            eventually(lambda: passed() > SIZE_BYTES / 4)
            link.set_up(False)
            cut = passed()
            eventually(
                lambda: link.stats().a_to_b.dropped_down.frames + link.stats().b_to_a.dropped_down.frames
            )
            assert passed() == cut
            link.set_up(True)
            _, said = process.communicate(timeout=WITHIN_S)
        finally:
            process.kill()
    assert process.returncode == 0, said
    assert digest(made) == digest(original)
    assert lab.lost_elsewhere() == 0
