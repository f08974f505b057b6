"""Sources that are no regular files, or say another size than they have: pipes, devices, /proc and /sys."""

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from mpx_command import copied, mpx, refused
from random_bytes import random_bytes
from sites import Site, make, partials

import mpx as api

pytestmark = pytest.mark.peers
CONTENT = random_bytes(3_000_001)
PAGE_OF_SYS = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def written_to(fifo: Path, content: bytes) -> threading.Thread:
    """Have somebody write into a fifo and go; it is removed as soon as all is read."""
    os.mkfifo(fifo)

    def write() -> None:
        with fifo.open("wb") as out:
            out.write(content)
        fifo.unlink()

    writer = threading.Thread(target=write)
    writer.start()
    return writer


@pytest.mark.parametrize("checksum", ["adler32", "sha256", "md5", "none"])
def test_a_fifo_is_copied_to_its_end(there: Site, here: Path, checksum: str) -> None:
    if checksum not in (*there.checksums, "none"):
        pytest.skip(f"{checksum} is not computed there")
    there.hand_over()
    writer = written_to(here / "fifo", CONTENT)
    try:
        report = api.copy(str(here / "fifo"), there.url_of("out"), api.CopyOptions(checksum=checksum))
    finally:
        writer.join()
    assert (there.folder / "out").read_bytes() == CONTENT
    assert report.checksum["result"] == ("unverified" if checksum == "none" else "verified")
    assert (report.files.moved, report.bytes.moved) == (1, len(CONTENT))


def test_a_rate_is_kept_by_what_comes_from_a_fifo(there: Site, here: Path) -> None:
    """What is read at once is more than what may pass at once."""
    there.hand_over()
    writer = written_to(here / "fifo", CONTENT)
    try:
        report = api.copy(str(here / "fifo"), there.url_of("out"), api.CopyOptions(rate_bps=20e6))
    finally:
        writer.join()
    assert (there.folder / "out").read_bytes() == CONTENT
    assert report.goodput_bps < 22.5e6


def test_what_a_shell_gives_for_the_output_of_a_command(there: Site, here: Path) -> None:
    there.hand_over()
    with subprocess.Popen(["seq", "300000"], stdout=subprocess.PIPE) as made:
        assert made.stdout
        name = f"/proc/{os.getpid()}/fd/{made.stdout.fileno()}"
        report = api.copy(name, there.url_of("out"))
        made.stdout.close()
    assert (there.folder / "out").read_text() == "".join(f"{i}\n" for i in range(1, 300_001))
    assert (there.folder / "out").stat().st_mode & 0o777 == 0o666 & ~umask()  # not 0600, as a pipe has
    assert report.checksum["result"] == "verified"


def umask() -> int:
    before = os.umask(0o022)
    os.umask(before)
    return before


def test_standard_input(there: Site) -> None:
    there.hand_over()
    copied(mpx("copy", "/dev/stdin", there.url_of("out"), stdin=CONTENT))
    assert (there.folder / "out").read_bytes() == CONTENT
    copied(mpx("copy", "/dev/stdin", there.url_of("empty"), stdin=b""))
    assert (there.folder / "empty").read_bytes() == b""


def test_several_at_once_go_into_a_folder(there: Site, here: Path) -> None:
    make(here / "file", 5)
    there.hand_over()
    writers = [written_to(here / f"{i}", CONTENT[i:]) for i in range(4)]
    api.copy([str(here / f"{i}") for i in range(4)] + [str(here / "file")], there.url)
    for writer in writers:
        writer.join()
    assert [(there.folder / f"{i}").read_bytes() for i in range(4)] == [CONTENT[i:] for i in range(4)]
    assert (there.folder / "file").read_bytes() == (here / "file").read_bytes()


@pytest.mark.parametrize(
    "source", [Path("/proc/version"), Path("/proc/kallsyms"), Path("/proc/self/environ"), PAGE_OF_SYS]
)
def test_files_of_the_kernel_that_do_not_know_their_size(there: Site, source: Path) -> None:
    if not source.exists() or not source.read_bytes():
        pytest.skip(f"this kernel has no {source}")
    there.hand_over()
    report = api.copy(str(source), there.url_of("out"))
    assert (there.folder / "out").read_bytes() == source.read_bytes()
    assert report.checksum["result"] == "verified"


def test_a_folder_of_the_kernel(there: Site) -> None:
    source = PAGE_OF_SYS.parent / "khugepaged"
    if not source.is_dir():
        pytest.skip(f"this kernel has no {source}")
    there.hand_over()
    before = {each.name: each.read_bytes() for each in source.iterdir() if each.is_file()}
    api.copy(str(source), there.url_of("out"), api.CopyOptions(recursive=True))
    found = {each.name: each.read_bytes() for each in (there.folder / "out").iterdir()}
    assert found.keys() == before.keys()
    for name, content in before.items():  # some count what the kernel does meanwhile
        assert found[name] == content or (source / name).read_bytes() != content


def test_the_null_device_is_an_empty_file(there: Site) -> None:
    there.hand_over()
    api.copy("/dev/null", there.url_of("out"))
    assert (there.folder / "out").read_bytes() == b""


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/full", "/dev/urandom", "/dev/random"])
def test_devices_without_an_end_are_refused(here: Path, device: str) -> None:
    refused(mpx("copy", device, here / "out"), 2, device, "no end", "/dev/stdin")
    (here / "link").symlink_to(device)
    refused(mpx("copy", here / "link", here / "out"), 2, "no end")
    assert not (here / "out").exists()


def test_a_socket_is_refused(here: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(here / "socket"))
        refused(mpx("copy", here / "socket", here / "out"), 3, "is a socket")


def test_a_fifo_of_a_server_is_refused(far: Site, here: Path) -> None:
    os.mkfifo(far.folder / "fifo")
    refused(mpx("copy", far.url_of("fifo"), here / "out"), 3, "fifo is not a regular file")
    assert not (here / "out").exists()


def test_a_dry_run_reads_nothing(here: Path) -> None:
    os.mkfifo(here / "fifo")
    ended = mpx("copy", "--dry-run", here / "fifo", here / "out")
    copied(ended)
    assert f"would copy {here}/fifo to {here}/out, size unknown" in ended.out


def test_a_fifo_that_nobody_writes_to_is_left_when_the_copy_stops(there: Site, here: Path) -> None:
    there.hand_over()
    os.mkfifo(here / "fifo")
    cancel = threading.Event()
    failed: list[BaseException] = []

    def copy() -> None:
        try:
            api.copy(str(here / "fifo"), there.url_of("out"), cancel=cancel)
        except api.MpxError as error:
            failed.append(error)

    copying = threading.Thread(target=copy)
    copying.start()
    cancel.set()
    copying.join(30)
    assert not copying.is_alive()
    assert isinstance(failed[0], api.Interrupted)
    assert not (there.folder / "out").exists()


def test_a_pipe_whose_bytes_came_damaged_is_an_error(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of it can be sent again: it fails, and leaves nothing behind."""
    write, damaged = os.pwrite, b"damaged"

    def badly(fd: int, data: memoryview, offset: int) -> int:
        return write(fd, damaged + bytes(data[len(damaged) :]) if offset == 0 else data, offset)

    monkeypatch.setattr(os, "pwrite", badly)
    writer = written_to(here / "fifo", CONTENT)
    with pytest.raises(api.SourceError, match="pipe and cannot be read a second time"):
        api.copy(str(here / "fifo"), str(here / "out"))
    writer.join()
    assert not (here / "out").exists()
    assert not partials(here)


def test_standard_input_that_is_closed_is_no_empty_file(here: Path) -> None:
    program = (
        "import os, sys; os.close(0); os.execv(sys.executable, [sys.executable, '-m', 'mpx', *sys.argv[1:]])"
    )
    call = [sys.executable, "-c", program, "copy", "/dev/stdin", str(here / "out")]
    ended = subprocess.run(call, capture_output=True, check=False)
    assert (ended.returncode, ended.stderr.count(b"\n")) == (3, 1), ended
    assert not (here / "out").exists()
