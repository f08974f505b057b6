"""Exit codes 8, 130 and 143: a copy that had begun, and what it leaves."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from interop.control_relay import ControlRelay
from interop.stock_server import StockServer
from mpx_command import copied, mpx, refused, running
from random_bytes import random_bytes
from sites import Site, make, partials

pytestmark = pytest.mark.peers


# --- 8: what arrived ------------------------------------------------------------------------------


def spoiled(line: bytes) -> bytes:
    """Another checksum; 213 answers CKSM here: 64 hex digits and nothing else."""
    return b"213 " + b"0bad" * 16 + b"\r\n" if line.startswith(b"213 ") and len(line) == 70 else line


def test_8_a_checksum_that_differs(tmp_path: Path, here: Path, file: Path) -> None:
    root = tmp_path / "served"
    root.mkdir()
    with StockServer(root) as server, ControlRelay(server.port, to_client=spoiled) as relay:
        url = f"ftp://127.0.0.1:{relay.port}{root}/"
        refused(mpx("copy", "--report", here / "report", file, url), 8, "sha256")
        report = json.loads((here / "report").read_text())
        assert report["checksum"] == {"algorithm": "sha256", "result": "mismatch", "bytes": {}}
        assert os.listdir(root) == []  # nothing under the final name, nothing worth keeping
        (root / "there").write_bytes(b"x" * 1000)
        refused(mpx("copy", url + "there", here / "down"), 8, "sha256")
        assert sorted(os.listdir(here)) == ["file", "report"]
        copied(mpx("copy", "--checksum", "none", file, url))


@pytest.mark.parametrize("change", ["grow", "shrink", "touch", "remove"])
def test_8_a_source_that_changes(
    stock: Site, here: Path, eventually: Callable[..., None], change: str
) -> None:
    source = make(here / "source", 2_000_000)
    with running("copy", "--rate", "8Mbit/s", source, stock.url_of("x")) as process:
        eventually(lambda: partials(stock.folder))
        if change == "grow":
            with source.open("ab") as out:
                out.write(b"more")
        elif change == "shrink":
            os.truncate(source, 1_000_000)
        elif change == "touch":
            os.utime(source, (1, 1))
        else:
            source.unlink()
        _, err = process.communicate(timeout=240)
    assert process.returncode == 8, err
    assert err.startswith(b"mpx: ")
    assert err.count(b"\n") == 1
    assert b"source" in err
    assert not (stock.folder / "x").exists()


# --- 130 and 143 ----------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["up", "down", "here"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_130_and_143_and_then_the_rest(
    stock: Site,
    here: Path,
    eventually: Callable[..., None],
    direction: str,
    number: signal.Signals,
    code: int,
) -> None:
    source, target, folder = str(make(here / "a", 6_000_000)), stock.url_of("x"), stock.folder
    if direction == "down":
        shutil.copy(source, stock.folder / "a")
        stock.hand_over()
        source, target, folder = stock.url_of("a"), str(here / "down/x"), here / "down"
    elif direction == "here":
        target, folder = str(here / "down/x"), here / "down"
    report = here / "report"
    words = ("copy", "-q", "--rate", "8Mbit/s", "--report", report, source, target)
    with running(*words, patient=True) as process:
        # So much that some stretch of 64 KiB, the least that is compared, is whole whatever is on its way.
        eventually(lambda: any(path.stat().st_blocks * 512 > 600_000 for path in partials(folder)))
        process.send_signal(number)
        out, err = process.communicate(timeout=240)
    assert process.returncode == code, err
    assert out == b""
    assert err.startswith(b"mpx: interrupted")
    assert err.count(b"\n") == 1
    told = json.loads(report.read_text())
    assert (told["status"], told["exit_code"]) == ("interrupted", code)
    assert not (folder / "x").exists()
    ended = mpx("unfinished")
    copied(ended)
    assert source in ended.out
    assert "of 5.72 MiB there" in ended.out  # perhaps none of its bytes was confirmed yet
    copied(mpx("copy", "--report", report, source, target))
    assert (folder / "x").read_bytes() == (here / "a").read_bytes()
    told = json.loads(report.read_text())
    assert told["files"]["resumed"] == 1
    assert told["bytes"]["resumed"] > 0
    assert mpx("unfinished").out == ""
    assert partials(folder) == []


_WITH_A_LIMIT = """
import resource, sys, mpx
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
try:
    mpx.copy(sys.argv[1], sys.argv[2], mpx.CopyOptions(recursive=True))
except mpx.PartialFailure as failed:
    print(failed.report.files.moved, failed.report.files.failed)
"""


@pytest.mark.peers
def test_10_one_file_that_cannot_be_written_does_not_stop_the_rest(tmp_path: Path) -> None:
    tree = tmp_path / "served" / "tree"
    tree.mkdir(parents=True)
    (tree / "big").write_bytes(random_bytes(3_000_000))
    for i in range(60):
        (tree / f"f{i}").write_bytes(random_bytes(20_000))
    with StockServer(tree.parent) as server:
        done = subprocess.run(
            [sys.executable, "-c", _WITH_A_LIMIT, f"{server.url}tree", str(tmp_path / "got")],
            env={**os.environ, "MPX_STATE_DIR": str(tmp_path / "state")},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.stdout.split() == ["60", "1"], done.stderr
    for i in range(60):
        assert (tmp_path / "got" / f"f{i}").read_bytes() == (tree / f"f{i}").read_bytes()
    assert not (tmp_path / "got" / "big").exists()
