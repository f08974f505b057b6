"""The account that a copy runs under cuts the file that it writes, or swaps it, in the middle of the copy."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from interop.mpx_process import Copy
from interop.test_swapped import partial_in
from random_bytes import random_bytes
from sites import Site, make, opened

pytestmark = pytest.mark.peers
SIZE = 24_000_001
RATE = "80Mbit/s"


def cut(folder: Path, left: int, eventually: Callable[..., None]) -> None:
    """Cut the partial file once some of it is there."""
    eventually(lambda: (part := partial_in(folder)) and part.stat().st_blocks * 512 >= 4_000_000)
    part = partial_in(folder)
    assert part
    os.truncate(part, left)


@pytest.mark.parametrize("left", [0, 1_000_000])
def test_a_file_that_is_cut_here_while_it_comes_is_never_called_whole(
    there: Site, here: Path, tmp_path: Path, eventually, left: int
) -> None:
    source = there.write("source", random_bytes(SIZE))
    (tmp_path / "work").mkdir()
    copy = Copy(tmp_path / "work", f"{there.url}source", here / "out", "--rate", RATE)
    cut(here, left, eventually)
    done = copy.end()
    assert done.code in (0, 8), done
    assert done.code == 0 or "truncated" in done.stderr
    assert (here / "out").exists() == (done.code == 0)
    assert done.code or (here / "out").read_bytes() == source.read_bytes()


@pytest.mark.parametrize("left", [0, 1_000_000])
def test_a_file_that_is_cut_at_mpx_serve_while_it_is_stored_is_sent_again(
    here: Path, tmp_path: Path, eventually, left: int
) -> None:
    source = make(here / "source", SIZE)
    (tmp_path / "work").mkdir()
    with opened("mpx serve", tmp_path) as there:
        copy = Copy(tmp_path / "work", source, f"{there.url}out", "--rate", RATE)
        cut(there.folder, left, eventually)
        done = copy.end()
        assert done.code == 0, done
        assert (there.folder / "out").read_bytes() == source.read_bytes()


def test_what_is_swapped_for_a_link_at_mpx_serve_is_not_written_through(
    here: Path, tmp_path: Path, eventually: Callable[..., None]
) -> None:
    source = make(here / "source", SIZE)
    (tmp_path / "work").mkdir()
    with opened("mpx serve", tmp_path) as there:
        victim = there.write("victim", b"of somebody else")
        before = victim.stat()
        copy = Copy(tmp_path / "work", source, f"{there.url}out", "--rate", RATE, "--retries", "1")
        eventually(lambda: (part := partial_in(there.folder)) and part.stat().st_size)
        part = partial_in(there.folder)
        assert part
        part.unlink()
        part.symlink_to("victim")
        assert copy.end().code != 0
        assert victim.read_bytes() == b"of somebody else"
        assert (victim.stat().st_mtime, victim.stat().st_mode) == (before.st_mtime, before.st_mode)
        assert not os.path.lexists(there.folder / "out")
