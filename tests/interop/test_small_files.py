"""Hundreds of small files over a long round trip: several sessions finish them, and a kill loses nothing."""

import os
import random
from pathlib import Path

import pytest
from interop.mpx_process import Copy, copy
from interop.stock_server import StockServer
from mpx_lab.proxy import DelayProxy

import mpx

pytestmark = pytest.mark.peers

FILES = 400
FOLDERS = 12


def make_tree(folder: Path) -> dict[str, bytes]:
    rng = random.Random(7)
    contents = {f"d{i % FOLDERS}/f{i}": rng.randbytes(i % 3000) for i in range(FILES)}
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return contents


def finished(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(".part")]


@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_kill_in_the_middle(tmp_path: Path, eventually, direction: str) -> None:
    root, near = tmp_path / "served", tmp_path / "near"
    root.mkdir()
    far = root / "far"
    given, target = (near, far) if direction == "up" else (far, near)
    contents = make_tree(given)
    with StockServer(root) as server, DelayProxy((server.host, server.port), rtt_s=0.05) as proxy:
        url = f"ftp://{proxy.host}:{proxy.port}{far}"
        names = (near, url) if direction == "up" else (url, near)
        running = Copy(tmp_path, *names, "-r")
        eventually(lambda: len(finished(target)) > FILES // 5 or running.process.poll() is not None)
        running.kill()
        assert running.end().code == -9
        for path in finished(target):  # what has its name is whole
            assert path.read_bytes() == contents[str(path.relative_to(target))]
        done = copy(tmp_path, *names, "-r")
        assert done.code == 0, done.stderr
        sessions = sum(connection.kind == "control" for connection in proxy.record().connections)
    assert {str(path.relative_to(target)): path.read_bytes() for path in finished(target)} == contents
    assert not list(target.rglob("*.part"))
    assert done.report["files"]["skipped"] > FILES // 5
    print(f"\n{direction}: {done.report['files']}, {sessions} control connections in both runs")


def test_times_and_modes_that_the_server_refuses_are_noted_once(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("folders of another owner need root")
    root, near = tmp_path / "served", tmp_path / "near"
    root.mkdir()
    make_tree(near)
    with StockServer(root) as server:
        for i in range(FOLDERS):  # of ours, so that the server may write into them and not change them
            folder = root / "far" / f"d{i}"
            folder.mkdir(parents=True)
            folder.chmod(0o777)
        report = mpx.copy(str(near), f"{server.url}far", mpx.CopyOptions(recursive=True))
    assert report.files.moved == FILES
    assert len([note for note in report.notes if "modification times are not kept" in note]) == 1
    assert len([note for note in report.notes if "modes are not kept" in note]) == 1
