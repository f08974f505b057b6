"""Files appear whole or not at all."""

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import mpx
from mpx.errors import UsageError
from mpx.files.atomic_file import check_writable, whole
from mpx.files.open_descriptor import named_descriptor


def test_what_was_there_is_replaced_at_the_end(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("old")
    with whole(str(file)) as aside:
        aside.write(b"new")
        assert file.read_text() == "old"
    assert file.read_text() == "new"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_what_is_not_finished_leaves_nothing(tmp_path: Path, error: type[BaseException]) -> None:
    with pytest.raises(error), whole(str(tmp_path / "file")) as aside:
        aside.write(b"half")
        raise error
    assert os.listdir(tmp_path) == []


def test_what_is_no_file_is_written_to(tmp_path: Path) -> None:
    fifo, read = tmp_path / "fifo", []
    os.mkfifo(fifo)
    reading = threading.Thread(target=lambda: read.append(fifo.read_text()))
    reading.start()
    check_writable(str(fifo))
    with whole(str(fifo)) as aside:
        aside.write(b"through")
    reading.join()
    assert (read, os.listdir(tmp_path)) == (["through"], ["fifo"])


def test_what_cannot_be_written_is_known_before(tmp_path: Path) -> None:
    check_writable(str(tmp_path / "file"))
    assert os.listdir(tmp_path) == []
    for wrong in (tmp_path, tmp_path / "none" / "file"):
        with pytest.raises(UsageError, match=f"cannot write {wrong}"):
            check_writable(str(wrong))
        with pytest.raises(UsageError, match="cannot write"), whole(str(wrong)) as aside:
            aside.write(b"x")


def test_a_file_that_is_replaced_keeps_its_mode_and_a_new_one_gets_the_usual(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    (tmp_path / "old").chmod(0o640)
    for name in ("old", "new"):
        with whole(str(tmp_path / name)) as file:
            file.write(b"new")
    (tmp_path / "usual").touch()
    assert (tmp_path / "old").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "usual").stat().st_mode


def planted(name: Path, how: str, victim: Path) -> None:
    if how == "link":
        name.symlink_to(victim)
    elif how == "hard link":
        name.hardlink_to(victim)
    else:
        os.mkfifo(name)


@pytest.mark.parametrize("how", ["link", "hard link", "fifo"])
def test_what_was_swapped_while_it_was_written_gets_no_name(tmp_path: Path, how: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("private")
    with (
        pytest.raises(UsageError, match="was replaced by another file"),
        whole(str(tmp_path / "file")) as file,
    ):
        file.write(b"new")
        (aside,) = tmp_path.glob(".file.*")
        aside.unlink()
        planted(aside, how, victim)
    assert victim.read_text() == "private"
    assert not os.path.lexists(tmp_path / "file")


def test_what_a_killed_run_left_is_removed_once_it_is_old(tmp_path: Path) -> None:
    """What is younger may be written just now, on another host that has the same folder."""
    write = (
        "import os, signal, sys\nfrom mpx.files.atomic_file import whole\n"
        "with whole(sys.argv[1]) as file:\n"
        "    file.write(b'half')\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    name = str(tmp_path / "file")
    assert subprocess.run([sys.executable, "-c", write, name], check=False).returncode == -9
    (left,) = os.listdir(tmp_path)
    days_ago = (tmp_path / left).stat().st_mtime - 2 * 24 * 3600
    others = [".file.1", ".file.x", f"{left}0", left[:-1], left.replace("file", "other")]
    for other in others:
        (tmp_path / other).touch()
        os.utime(tmp_path / other, (days_ago, days_ago))
    (tmp_path / (".file." + 16 * "0")).symlink_to("nowhere")
    for is_old in (False, True):
        if is_old:
            os.utime(tmp_path / left, (days_ago, days_ago))
        with whole(name) as file:
            file.write(b"new")
        assert (tmp_path / left).exists() is not is_old
    assert sorted(os.listdir(tmp_path)) == sorted([*others, ".file." + 16 * "0", "file"])


def test_what_the_disk_refuses_gets_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some disks say only when they are asked that they have not stored what was written."""
    (tmp_path / "file").write_text("old")

    def refused(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", refused)
    with pytest.raises(UsageError, match="file: Input/output error"), whole(str(tmp_path / "file")) as file:
        file.write(b"new")
    assert os.listdir(tmp_path) == ["file"]
    assert (tmp_path / "file").read_text() == "old"


def test_two_that_write_at_once_do_not_meet(tmp_path: Path) -> None:
    """As two hosts with one folder may, whose process ids are the same."""
    with whole(str(tmp_path / "file")) as one, whole(str(tmp_path / "file")) as two:
        one.write(b"one")
        two.write(b"two")
    assert (tmp_path / "file").read_bytes() == b"one"  # whose `with` ends last
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize(
    "name", ["x" * 255, "\u20ac" * 85, "x" + "\u00fc" * 127], ids=["one byte", "three bytes", "two bytes"]
)
def test_the_longest_names(tmp_path: Path, name: str) -> None:
    check_writable(str(tmp_path / name))
    with whole(str(tmp_path / name)) as file:
        file.write(b"content")
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("how", ["/dev/fd/{}", "/proc/self/fd/{}", "/proc/{pid}/fd/{}", "link"])
def test_a_file_that_is_open_is_written_behind_what_it_has(tmp_path: Path, how: str) -> None:
    """As --report /dev/stdout, where that is a file: the link is not replaced, and nothing lost."""
    with (tmp_path / "out").open("w+b", buffering=0) as out:
        out.write(b"before ")
        name = how.format(out.fileno(), pid=os.getpid())
        if how == "link":
            name = str(tmp_path / "link")
            Path(name).symlink_to(f"/dev/fd/{out.fileno()}")
        check_writable(name)
        with whole(name) as file:
            file.write(b"through ")
        out.write(b"after")
        assert (tmp_path / "out").read_bytes() == b"before through after"
        assert named_descriptor(name) == (os.getpid(), out.fileno())
        with pytest.raises(mpx.DestinationError, match="is an open file"):
            mpx.copy(str(tmp_path / "out"), name)
    assert sorted(os.listdir(tmp_path)) == (["link", "out"] if how == "link" else ["out"])


def test_names_of_no_open_file(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "1").touch()
    for name in ("loop", "1", "not/there"):
        assert named_descriptor(str(tmp_path / name)) is None
    for name in ("/proc/self/fd", "/proc/self/fd/x", "/proc/version", "/dev/null", "/"):
        assert named_descriptor(name) is None
