"""`mpx explain` as a user calls it, on a report that a copy has just written."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from explained import REPORTS
from mpx_command import copied, mpx
from sites import Site, make


@pytest.mark.peers
def test_a_copy_is_told_and_drawn(far: Site, here: Path) -> None:
    make(here / "a", 3_000_000)
    copied(mpx("copy", "--report", here / "r.json", here / "a", far.url))
    before = (here / "r.json").read_bytes()
    told = mpx("explain", here / "r.json", "--html", here / "r.html", "--png", here / "r.png")
    assert (told.code, told.err) == (0, "")
    first, second, *_ = told.out.splitlines()
    assert first == "The copy" and second.startswith("  - copied 1 of 1 file, 2.86 MiB in ")
    assert "  - verified: each file has the same checksum at both ends" in told.out
    assert (here / "r.html").read_text().count("<svg ") == 1
    assert (here / "r.png").read_bytes().startswith(b"\x89PNG")
    assert (here / "r.json").read_bytes() == before


def test_standard_input(here: Path) -> None:
    data = (REPORTS / "window.json").read_bytes()
    told = mpx("explain", "-", stdin=data)
    assert told.out == mpx("explain", REPORTS / "window.json").out
    assert "  > a larger window at the receiver, dtn.example.org" in told.out


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["nowhere"], "cannot read 'nowhere': No such file or directory"),
        (["."], "cannot read '.': Is a directory"),
        (["damaged"], "damaged is not JSON as mpx writes it"),
        (["other"], "other has no 'decisions'"),
        (["r.json", "--html", "r.json"], "'r.json' is the report itself"),
        (["r.json", "--html", "no/such/folder"], "cannot write no/such/folder: No such file or directory"),
        (["r.json", "--html", "-"], "a page or picture goes into a file: give its name instead of -"),
        (["r.json", "--png", "r.gif"], "--png 'r.gif': the picture is a PNG"),
        (["empty", "--png", "e.png"], "nothing to draw in 'empty'"),
        ([], "Missing argument 'REPORT'"),
    ],
)
def test_what_is_wrong_is_one_line(here: Path, words: list[str], why: str) -> None:
    whole = json.loads((REPORTS / "rate.json").read_text())
    (here / "r.json").write_text(json.dumps(whole))
    (here / "empty").write_text(json.dumps(whole | {"timeline": [], "intervals": []}))
    (here / "damaged").write_bytes((REPORTS / "rate.json").read_bytes()[:500])
    (here / "other").write_text('{"mpx": "0.1.0"}')
    ended = mpx("explain", *words, folder=here)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("mpx: ") and why in ended.err and ended.err.count("\n") == 1
    assert json.loads((here / "r.json").read_text()) == whole


def test_without_matplotlib_words_and_page_are_as_with_it(here: Path) -> None:
    (here / "matplotlib.py").write_text("raise ImportError('not here')\n")
    program = "import sys; sys.path.insert(0, sys.argv.pop(1)); from mpx.cli import main; main()"
    words = [sys.executable, "-c", program, str(here), "explain", str(REPORTS / "window.json")]
    page = subprocess.run(
        [*words, "--html", str(here / "w.html")], capture_output=True, text=True, check=False
    )
    assert (page.returncode, page.stderr) == (0, "")
    assert (here / "w.html").stat().st_size > 10_000
    png = subprocess.run([*words, "--png", str(here / "w.png")], capture_output=True, text=True, check=False)
    assert (png.returncode, png.stdout) == (2, "")
    assert png.stderr == (
        "mpx: --png needs matplotlib (not here); install it with mpx, in its sources: pip install '.[plot]'\n"
    )
