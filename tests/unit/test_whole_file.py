"""Files appear whole or not at all."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import mpx
from mpx.errors import UsageError
from mpx.open_descriptor import named_descriptor
from mpx.whole_file import check_writable, whole


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
def test_what_was_planted_beside_it_is_not_written(tmp_path: Path, how: str) -> None:
    """The name of what is written beside a file can be guessed."""
    victim = tmp_path / "victim"
    victim.write_text("private")
    planted(tmp_path / f".file.{os.getpid()}", how, victim)
    check_writable(str(tmp_path / "file"))
    planted(tmp_path / f".file.{os.getpid()}", how, victim)
    with whole(str(tmp_path / "file")) as file:
        file.write(b"new")
    assert (victim.read_text(), (tmp_path / "file").read_text()) == ("private", "new")
    assert not (tmp_path / "file").is_symlink()


@pytest.mark.parametrize("how", ["link", "hard link", "fifo"])
def test_what_was_swapped_while_it_was_written_gets_no_name(tmp_path: Path, how: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("private")
    aside = tmp_path / f".file.{os.getpid()}"
    with (
        pytest.raises(UsageError, match="somebody has put another file"),
        whole(str(tmp_path / "file")) as file,
    ):
        file.write(b"new")
        aside.unlink()
        planted(aside, how, victim)
    assert victim.read_text() == "private"
    assert not os.path.lexists(tmp_path / "file")


def test_what_a_killed_run_left_is_removed_by_the_next(tmp_path: Path) -> None:
    write = (
        "import os, signal, sys\nfrom mpx.whole_file import whole\n"
        "with whole(sys.argv[1]) as file:\n"
        "    file.write(b'half')\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    name = str(tmp_path / "file")
    assert subprocess.run([sys.executable, "-c", write, name], check=False).returncode == -9
    assert len(os.listdir(tmp_path)) == 1
    others = [".file.1", ".file.x", ".file.0 1", f".file.{2**30}9", ".other.999999999"]
    for other in others:
        (tmp_path / other).touch()
    (tmp_path / ".file.999999998").symlink_to("nowhere")
    with whole(name) as file:
        file.write(b"new")
    assert sorted(os.listdir(tmp_path)) == sorted([*others, ".file.999999998", "file"])


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
        with pytest.raises(mpx.DestinationError, match="open already"):
            mpx.copy(str(tmp_path / "out"), name)
    assert sorted(os.listdir(tmp_path)) == (["link", "out"] if how == "link" else ["out"])


def test_names_of_no_open_file(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "1").touch()
    for name in ("loop", "1", "not/there"):
        assert named_descriptor(str(tmp_path / name)) is None
    for name in ("/proc/self/fd", "/proc/self/fd/x", "/proc/version", "/dev/null", "/"):
        assert named_descriptor(name) is None
