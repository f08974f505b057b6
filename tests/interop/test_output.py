"""Standard output and error that are full, closed or have no reader: a copy goes on, a list says so."""

import contextlib
import os
import pty
import select
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from interop.listing_server import ListingServer
from sites import opened

MPX = f'"{sys.executable}" -m mpx'


def run(command: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        capture_output=True,
        env={**os.environ, "MPX_STATE_DIR": str(folder / "state"), **environment},
        check=False,
    )


@pytest.mark.parametrize("stdout", ["> /dev/full", ">&-", "| true; exit ${PIPESTATUS[0]}"])
@pytest.mark.parametrize(
    ("stderr", "options"),
    [
        *(("", options) for options in ("", "-v", "--progress json", "--progress plain")),
        *((stderr, "--progress plain") for stderr in ("2> /dev/full", "2>&-")),
        *(
            pytest.param(stderr, options, marks=pytest.mark.long)
            for stderr in ("2> /dev/full", "2>&-")
            for options in ("", "-v", "--progress json")
        ),
    ],
)
def test_a_copy_does_not_mind_its_output(tmp_path: Path, stdout: str, stderr: str, options: str) -> None:
    (tmp_path / "one").write_bytes(b"1" * 100_000)
    done = run(f"{MPX} copy {options} one two {stderr} {stdout}", tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "two").read_bytes() == (tmp_path / "one").read_bytes()
    assert b"Traceback" not in done.stderr and b"Exception ignored" not in done.stderr


@pytest.mark.parametrize("stdout", ["> /dev/full", ">&-"])
def test_a_copy_that_fails_keeps_its_exit_code(tmp_path: Path, stdout: str) -> None:
    done = run(f"{MPX} copy missing two {stdout}", tmp_path)
    assert done.returncode == 3
    assert b"missing" in done.stderr


def test_the_error_stands_last_where_both_outputs_go_to_one_file(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / "from" / name).mkdir(parents=True)
    os.mkfifo(tmp_path / "from/fifo")
    (tmp_path / "from/two/x").write_bytes(b"x")
    (tmp_path / "to/two/x").mkdir(parents=True)
    done = run(f"{MPX} copy -r from to 2>&1", tmp_path)
    skipped, failed, last = done.stdout.decode().splitlines()
    assert skipped.startswith("skipped ") and "from/fifo" in skipped
    assert failed.startswith("mpx: not copied ") and "from/two/x" in failed
    assert last.startswith("mpx: 1 of 2 files were not copied")


def test_the_error_of_a_list_stands_behind_what_is_listed(tmp_path: Path) -> None:
    lines = b"type=file;size=5; one\r\nwhat is this\r\n"
    with ListingServer({"/d/one": b"12345"}, {"/d": lines}) as server:
        done = run(f"{MPX} list {server.url}/d 2>&1", tmp_path)
    *lines, last = done.stdout.decode().splitlines()
    assert "one" in lines
    assert last.startswith("mpx: ") and "named above" in last


@pytest.mark.parametrize(("source", "code"), [("one", 0), ("missing", 3)])
def test_a_report_that_cannot_be_written_leaves_the_exit_code(tmp_path: Path, source: str, code: int) -> None:
    (tmp_path / "one").write_bytes(b"1" * 100_000)
    done = run(f"{MPX} copy -q --report /dev/full {source} two", tmp_path)
    lines = done.stderr.decode().splitlines()
    assert (done.returncode, len(lines)) == (code, 1 if code == 0 else 2), done
    assert lines[0] == "mpx: no report was written: cannot write /dev/full: No space left on device"
    assert code or (tmp_path / "two").read_bytes() == b"1" * 100_000


def test_a_closed_descriptor_is_not_given_to_a_file(tmp_path: Path) -> None:
    """What is printed would be written into what is copied."""
    (tmp_path / "one").write_bytes(b"1" * 100_000)
    assert run(f"{MPX} copy -v --progress json one two <&- >&- 2>&-", tmp_path).returncode == 0
    assert (tmp_path / "two").read_bytes() == b"1" * 100_000


def test_a_list_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"1")
    done = run(f"{MPX} list . > /dev/full", tmp_path)
    assert done.returncode == 1
    assert done.stderr.decode().splitlines() == [
        "mpx: cannot write to standard output: No space left on device"
    ]


@pytest.mark.parametrize("stdout", ["> /dev/full", "| true; exit ${PIPESTATUS[0]}"])
def test_a_list_that_fails_keeps_its_exit_code(tmp_path: Path, stdout: str) -> None:
    with ListingServer({"/d/one": b"1"}, {"/d": b"type=file;size=1; one\r\nwhat is this\r\n"}) as server:
        done = run(f"{MPX} list {server.url}/d {stdout}", tmp_path)
    assert done.returncode == 10, done.stderr
    assert b"Traceback" not in done.stderr and b"Exception ignored" not in done.stderr


def test_a_list_whose_reader_has_gone_ends_in_silence(tmp_path: Path) -> None:
    for number in range(20_000):
        (tmp_path / f"{number:0200}").touch()
    done = run(f"{MPX} list . | head -1; exit ${{PIPESTATUS[0]}}", tmp_path)
    assert (done.returncode, done.stderr) == (1, b"")


def test_names_that_the_locale_cannot_show_are_escaped(tmp_path: Path) -> None:
    (tmp_path / "naïve").write_bytes(b"1")
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    done = run(f"{MPX} copy -v na* two", tmp_path, **ascii_only)
    assert b"Traceback" not in done.stderr
    assert (tmp_path / "two").read_bytes() == b"1"


def full_pipe() -> tuple[int, int]:
    """Return both ends of a pipe that takes no byte more."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"x" * 4096)
    os.set_blocking(writer, True)
    return reader, writer


def full_terminal() -> tuple[int, int]:
    """Return both ends of a terminal that nobody reads; it has room for less than a line."""
    reader, writer = pty.openpty()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"x" * 100)
    os.set_blocking(writer, True)
    return reader, writer


@pytest.mark.parametrize("streams", [("stderr",), ("stdout", "stderr")])
@pytest.mark.parametrize("full", [full_pipe, full_terminal])
def test_a_copy_goes_on_where_nobody_reads(
    tmp_path: Path, full: Callable[[], tuple[int, int]], streams: tuple[str, ...]
) -> None:
    """As a pager that waits for its user, or a terminal that was stopped."""
    (tmp_path / "one").write_bytes(b"1" * 100_000)
    reader, writer = full()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "mpx", "copy", "-v", "--progress", "json", "one", "two"],
            cwd=tmp_path,
            env={**os.environ, "MPX_STATE_DIR": str(tmp_path / "state")},
            stdin=subprocess.DEVNULL,
            stdout=writer if "stdout" in streams else subprocess.DEVNULL,
            stderr=writer,
            check=False,
            timeout=60,
        )
    finally:
        os.close(reader)
        os.close(writer)
    assert done.returncode == 0
    assert (tmp_path / "two").read_bytes() == (tmp_path / "one").read_bytes()


def test_a_list_waits_for_its_reader(tmp_path: Path) -> None:
    """Also where whoever called does not want writes to wait."""
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(1000):
        (folder / f"{number:0200}").touch()
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with subprocess.Popen(
        [sys.executable, "-m", "mpx", "list", str(folder)], stdout=writer, stderr=subprocess.PIPE
    ) as listing:
        os.close(writer)
        poll = select.poll()
        poll.register(reader, select.POLLIN)
        poll.poll()
        with os.fdopen(reader) as lines:
            names = {line.rstrip("\n") for line in lines}
        assert listing.stderr is not None and listing.stderr.read() == b""
        assert listing.wait() == 0
    assert len(names) == 1000


@pytest.mark.parametrize("most", [5, 7])  # with 4 Python itself does not start
def test_too_few_descriptors_are_told_in_one_line(tmp_path: Path, most: int) -> None:
    (tmp_path / "one").write_bytes(b"1" * 100_000)
    limit = f"import os, resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, ({most}, {most})); "
    call = "os.execv(sys.executable, [sys.executable, '-m', 'mpx', 'copy', 'one', 'two'])"
    done = run(f'{sys.executable} -c "{limit}{call}"', tmp_path)
    assert done.returncode != 0
    assert b"Traceback" not in done.stderr and b"fault of mpx" not in done.stderr
    assert not (tmp_path / "two").exists()


def test_a_report_does_not_replace_what_is_copied(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"1" * 1000)
    (tmp_path / "link").symlink_to("one")
    for command in ("one two --report one", "one two --report link", "one two --report ./two"):
        done = run(f"{MPX} copy {command}", tmp_path)
        assert done.returncode == 2 and b"would replace what is copied" in done.stderr, (command, done)
        assert not (tmp_path / "two").exists()
    assert (tmp_path / "one").read_bytes() == b"1" * 1000


def test_a_report_does_not_replace_a_file_of_a_tree(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "one").write_bytes(b"1" * 1000)
    assert run(f"{MPX} copy -r tree to --report tree/one", tmp_path).returncode == 2
    (tmp_path / "to").mkdir()
    done = run(f"{MPX} copy -r tree/ to/tree --report to/tree/one", tmp_path)
    assert done.returncode == 2, done  # there is no such folder yet
    (tmp_path / "to" / "tree").mkdir()
    done = run(f"{MPX} copy -r tree to/tree --report to/tree/one", tmp_path)
    where = next((tmp_path / "to").rglob("one"))
    assert (done.returncode, where.read_bytes()) == (0, b"1" * 1000), done
    for _ in range(2):  # an older report is replaced
        assert run(f"{MPX} copy -r tree to/tree --report to/tree/r.json", tmp_path).returncode == 0


@pytest.mark.parametrize("is_read", [False, True])
def test_a_report_to_a_fifo(tmp_path: Path, *, is_read: bool) -> None:
    """Where nobody reads it the copy ends all the same."""
    (tmp_path / "one").write_bytes(b"1" * 1000)
    os.mkfifo(tmp_path / "fifo")
    reading = "cat fifo > report & " if is_read else ""
    done = run(f"{reading}{MPX} copy -q one two --report fifo; code=$?; wait; exit $code", tmp_path)
    assert done.returncode == 0
    assert (b"nobody has read it" in done.stderr) != is_read, done
    assert not is_read or b'"status": "done"' in (tmp_path / "report").read_bytes()


def test_a_list_of_sources_that_is_closed_or_without_an_end(tmp_path: Path) -> None:
    done = run(f"{MPX} copy --from-file - two <&-", tmp_path)
    assert done.returncode == 2 and b"mpx: standard input names no source" in done.stderr, done
    done = run(f"{MPX} copy --from-file /dev/zero two", tmp_path)
    assert done.returncode == 2 and b"/dev/zero has more than" in done.stderr, done


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a mount namespace")
def test_a_host_without_proc(tmp_path: Path) -> None:
    """As some containers are."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "one").write_bytes(b"1" * 100_000)
    done = run(f"unshare -m bash -c 'mount -t tmpfs none /proc && {MPX} copy -q -r tree two'", tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / "two" / "one").read_bytes() == b"1" * 100_000


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_terminal_shows_that_a_probe_goes_on(is_terminal: bool, tmp_path: Path) -> None:
    reader, writer = pty.openpty() if is_terminal else os.pipe()
    with opened("mpx serve", tmp_path) as site:
        command = [sys.executable, "-m", "mpx", "probe", "--window", "1s", site.url]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=writer, check=True, timeout=60)
        os.close(writer)
        told = b""
        with contextlib.suppress(OSError):  # which the end of a terminal is
            while more := os.read(reader, 65536):
                told += more
        os.close(reader)
    assert (f"probing {site.url}: 0 of 1 second".encode() in told) == is_terminal
    assert is_terminal or not told
    assert b"probing" not in done.stdout
    assert not told.rpartition(b"\r")[2].strip()  # the line is gone
