"""mpx.copy() as a library: typed, silent, from several threads at once, and stopped when asked."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest
from sites import Site, make

import mpx

pytestmark = pytest.mark.peers


def test_what_is_public() -> None:
    assert set(mpx.__all__) <= set(dir(mpx)) | {"copy", "CopyOptions", "Report", "Progress"}
    for name in mpx.__all__:
        assert getattr(mpx, name) is not None
    with pytest.raises(AttributeError):
        mpx.no_such_thing  # noqa: B018


def test_it_is_typed(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import threading\nimport mpx\n\n\n"
        "def show(progress: mpx.Progress) -> None:\n    print(progress.bytes_done + 1)\n\n\n"
        "stop = threading.Event()\n"
        "report = mpx.copy('a', 'b', mpx.CopyOptions(streams=3), on_progress=show, cancel=stop)\n"
        "reveal_type(report)\nreveal_type(report.files.moved)\n"
        "mpx.copy(3, 'b')\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", program], capture_output=True, text=True, check=False
    )
    assert 'Revealed type is "mpx.report.Report"' in done.stdout
    assert re.search(r'Revealed type is "(builtins\.)?int"', done.stdout)
    assert done.stdout.count("error:") == 1, done.stdout
    assert "arg-type" in done.stdout


def test_it_prints_nothing_and_leaves_signals_alone(
    stock: Site, here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)]
    make(here / "up/a", 100_000)
    os.mkfifo(here / "up/fifo")
    report = mpx.copy(str(here / "up"), stock.url_of("dst"), mpx.CopyOptions(recursive=True))
    with pytest.raises(mpx.SourceError):
        mpx.copy(stock.url_of("missing"), str(here / "x"))
    assert report.files.moved == 1
    assert capfd.readouterr() == ("", "")
    assert before == [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)]


def test_names_of_this_host_may_be_paths(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a")
    (tmp_path / "b").write_bytes(b"b")
    mpx.copy(tmp_path / "a", tmp_path / "there")
    mpx.copy([tmp_path / "a", str(tmp_path / "b")], tmp_path / "into")
    assert (tmp_path / "there").read_bytes() == b"a"
    assert sorted(file.name for file in (tmp_path / "into").iterdir()) == ["a", "b"]


def test_several_threads_at_once(far: Site, here: Path) -> None:
    for i in range(6):
        make(here / f"{i}", 700_000 + i)

    def both_ways(i: int) -> mpx.Report:
        mpx.copy(str(here / f"{i}"), far.url_of(f"{i}"))
        return mpx.copy(far.url_of(f"{i}"), str(here / f"back {i}"))

    with ThreadPoolExecutor(6) as threads:
        reports = list(threads.map(both_ways, range(6)))
    for i, report in enumerate(reports):
        assert report.bytes.moved == 700_000 + i
        assert (here / f"{i}").read_bytes() == (here / f"back {i}").read_bytes()


def test_no_thread_and_no_descriptor_stays(far: Site, here: Path, eventually: Callable[..., None]) -> None:
    make(here / "a", 2_000_000)
    mpx.copy(str(here / "a"), far.url)
    threads, descriptors = threading.active_count(), len(os.listdir("/proc/self/fd"))
    for i in range(3):
        mpx.copy(str(here / "a"), far.url_of(f"b{i}"))
        mpx.copy(far.url_of("a"), str(here / f"c{i}"))
        with pytest.raises(mpx.SourceError):
            mpx.copy(far.url_of("missing"), str(here / "x"))
    eventually(lambda: threading.active_count() <= threads)
    eventually(lambda: len(os.listdir("/proc/self/fd")) <= descriptors)


def test_progress(stock: Site, here: Path) -> None:
    size = 2_000_000
    make(here / "a", size)
    seen: list[mpx.Progress] = []
    mpx.copy(str(here / "a"), stock.url, mpx.CopyOptions(rate_bps=20e6), on_progress=seen.append)
    assert len(seen) > 3
    assert all(first.elapsed_s < second.elapsed_s for first, second in pairwise(seen))
    assert all(first.bytes_done <= second.bytes_done for first, second in pairwise(seen))
    assert 0 < max(progress.bytes_done for progress in seen) <= size
    assert {progress.bytes_total for progress in seen if progress.files_total} == {size}
    assert any(progress.goodput_bps > 0 for progress in seen)
    assert all(progress.reason for progress in seen)


@pytest.mark.parametrize("direction", ["up", "down", "here"])
def test_cancel_and_continue(far: Site, here: Path, direction: str) -> None:
    size = 6_000_000
    data = make(here / "a", size).read_bytes()
    far.write("a", data)
    source, target, folder = {
        "up": (str(here / "a"), far.url_of("x"), far.folder),
        "down": (far.url_of("a"), str(here / "x"), here),
        "here": (str(here / "a"), str(here / "x"), here),
    }[direction]
    cancel = threading.Event()

    def stop_soon(progress: mpx.Progress) -> None:
        if progress.bytes_done > size // 3:
            cancel.set()

    slow = mpx.CopyOptions(rate_bps=30e6)
    with pytest.raises(mpx.Interrupted) as caught:
        mpx.copy(source, target, slow, on_progress=stop_soon, cancel=cancel)
    report = caught.value.report
    assert report is not None
    assert (report.status, report.exit_code, report.files.moved) == ("interrupted", 130, 0)
    assert not (folder / "x").exists()
    report = mpx.copy(source, target)
    assert (report.files.resumed, report.bytes.moved + report.bytes.resumed) == (1, size)
    assert report.bytes.resumed > 0
    assert (folder / "x").read_bytes() == data


def test_cancelled_before_it_begins(far: Site, here: Path) -> None:
    make(here / "a", 10)
    cancel = threading.Event()
    cancel.set()
    for pair in ((str(here / "a"), far.url_of("x")), (far.url_of("x"), str(here / "b"))):
        with pytest.raises(mpx.Interrupted):
            mpx.copy(*pair, cancel=cancel)
    with pytest.raises(mpx.Interrupted):
        mpx.copy(
            str(here), str(here.parent / "dst"), mpx.CopyOptions(recursive=True, dry_run=True), cancel=cancel
        )
    assert os.listdir(far.folder) == []
    assert os.listdir(here) == ["a"]


def test_cancelled_while_listing(here: Path) -> None:
    for i in range(500):
        make(here / f"up/{i}", 0)
    cancel = threading.Event()
    rehearsed: list[str] = []

    def stop(line: str) -> None:
        rehearsed.append(line)
        cancel.set()

    options = mpx.CopyOptions(recursive=True, dry_run=True)
    with pytest.raises(mpx.Interrupted):
        mpx.copy(str(here / "up"), str(here / "dst"), options, on_rehearsed=stop, cancel=cancel)
    assert len(rehearsed) == 1


def test_an_error_in_on_progress_ends_the_copy(
    stock: Site, here: Path, eventually: Callable[..., None]
) -> None:
    make(here / "a", 3_000_000)
    threads = threading.active_count()

    def broken(_: mpx.Progress) -> None:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        mpx.copy(str(here / "a"), stock.url, mpx.CopyOptions(rate_bps=8e6), on_progress=broken)
    eventually(lambda: threading.active_count() <= threads)
    assert not (stock.folder / "a").exists()
    mpx.copy(str(here / "a"), stock.url)
    assert (stock.folder / "a").read_bytes() == (here / "a").read_bytes()


def test_options_are_checked() -> None:
    for wrong in (
        {"streams": 0}, {"checksum": "crc"}, {"rate_bps": 0.0}, {"timeout_s": -1.0},
        {"ipv4": True, "ipv6": True}, {"port_range": "x"},
    ):  # fmt: skip
        with pytest.raises(mpx.UsageError):
            mpx.CopyOptions(**wrong)
    with pytest.raises(mpx.UsageError):
        mpx.copy([], "x")
    with pytest.raises(mpx.UsageError, match="one for each"):
        mpx.copy(["a", "b"], "x", targets=["c"])


def test_targets(here: Path) -> None:
    make(here / "a", 3)
    make(here / "b", 4)
    mpx.copy([str(here / "a"), str(here / "b")], str(here / "dst"), targets=["deep/x", None])
    assert (here / "dst/deep/x").stat().st_size == 3
    assert (here / "dst/b").stat().st_size == 4


def test_the_public_names_are_listed() -> None:
    assert dir(mpx) == sorted(mpx.__all__)


def test_a_dry_run_tells_its_caller(here: Path) -> None:
    make(here / "up/a", 3)
    lines: list[str] = []
    options = mpx.CopyOptions(recursive=True, dry_run=True)
    report = mpx.copy(str(here / "up"), str(here / "dst"), options, on_rehearsed=lines.append)
    assert len(lines) == 2
    assert (report.files.total, report.files.moved) == (1, 0)
    assert os.listdir(here) == ["up"]


def test_relative_names_mean_the_folder_they_were_given_in(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("one", "two"):
        make(here / folder / "a", 6_000_000)
        monkeypatch.chdir(here / folder)
        cancel = threading.Event()
        with pytest.raises(mpx.Interrupted):
            mpx.copy(
                "a",
                "b",
                mpx.CopyOptions(rate_bps=40e6),
                on_progress=lambda p, c=cancel: p.bytes_done and c.set(),
                cancel=cancel,
            )
    for folder in ("one", "two"):
        monkeypatch.chdir(here / folder)
        assert mpx.copy("./a", "b").files.resumed == 1
        assert (here / folder / "a").read_bytes() == (here / folder / "b").read_bytes()
