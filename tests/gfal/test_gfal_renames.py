"""Files that replace others where a server renames to no name that is taken, as SRM does."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from gfal.fake_srm import FakeSrm
from mpx_command import copied, running
from sites import make
from web.web_command import mpx_there

import mpx as api
from mpx.errors import DestinationError, NotRenamed

OLD = b"the old one"
REPLACES = api.CopyOptions(overwrite="always")


def contents(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in folder.iterdir()]


def is_of_new(old: str, new: str) -> bool:
    """Tell whether it is the new file that gets its name."""
    return old.endswith(".part") and not old.endswith("-old.part") and new == "file"


@pytest.fixture
def source(here: Path, srm: FakeSrm) -> Path:
    (srm.folder / "file").write_bytes(OLD)
    return make(here / "file", 101)


def test_an_old_file_is_gone_once_the_new_one_is_there(source: Path, srm: FakeSrm) -> None:
    api.copy(str(source), f"{srm.url}file", REPLACES)
    assert contents(srm.folder) == [source.read_bytes()]


def test_an_old_file_stays_where_the_new_one_is_refused_its_name(source: Path, srm: FakeSrm) -> None:
    srm.may_move = lambda old, new: not is_of_new(old, new)
    with pytest.raises(DestinationError, match="cannot rename to") as caught:
        api.copy(str(source), f"{srm.url}file", REPLACES)
    assert not isinstance(caught.value, NotRenamed)
    assert (srm.folder / "file").read_bytes() == OLD
    assert contents(srm.folder) == [OLD]


def test_an_old_file_that_cannot_be_put_aside_stays(source: Path, srm: FakeSrm) -> None:
    srm.may_move = lambda _old, _new: False
    with pytest.raises(DestinationError):
        api.copy(str(source), f"{srm.url}file", REPLACES)
    assert (srm.folder / "file").read_bytes() == OLD
    assert contents(srm.folder) == [OLD]


def test_both_files_are_left_where_none_gets_the_name(source: Path, srm: FakeSrm) -> None:
    srm.may_move = lambda _old, new: new != "file"
    with pytest.raises(NotRenamed, match=r"the old file is now /\.file\.mpx-[0-9a-f]+-old\.part"):
        api.copy(str(source), f"{srm.url}file", REPLACES)
    assert sorted(contents(srm.folder)) == sorted([OLD, source.read_bytes()])
    srm.may_move = lambda _old, _new: True
    api.copy(str(source), f"{srm.url}file", REPLACES)
    assert contents(srm.folder) == [source.read_bytes()]


@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
def test_the_same_copy_settles_what_a_kill_has_left(
    source: Path, srm: FakeSrm, eventually: Callable[..., None], *, is_done: bool
) -> None:
    """It comes between the old file that was put aside and the new one's name, or just after that one."""
    asked, killed = threading.Event(), threading.Event()

    def held(old: str, new: str) -> bool:
        if is_of_new(old, new):
            asked.set()
            killed.wait()
            return is_done
        return True

    srm.may_move = held
    with running("copy", "--overwrite", "always", source, f"{srm.url}file") as copy:
        eventually(asked.is_set)
        copy.kill()
        killed.set()
    eventually(lambda: (srm.folder / "file").exists() == is_done)
    aside = sorted(path.read_bytes() for path in srm.folder.glob(".*-old.part"))
    assert aside == [OLD]
    srm.may_move = lambda _old, _new: True
    copied(mpx_there("copy", "-q", "--overwrite", "always", source, f"{srm.url}file"))
    assert contents(srm.folder) == [source.read_bytes()]


def test_an_old_file_comes_back_at_the_next_attempt(source: Path, srm: FakeSrm) -> None:
    """One that was refused all names has left it aside; what is refused its name again brings it back."""
    srm.may_move = lambda _old, new: new != "file"
    with pytest.raises(NotRenamed):
        api.copy(str(source), f"{srm.url}file", REPLACES)
    srm.may_move = lambda old, new: not is_of_new(old, new)
    with pytest.raises(DestinationError) as caught:
        api.copy(str(source), f"{srm.url}file", REPLACES)
    assert not isinstance(caught.value, NotRenamed)
    assert (srm.folder / "file").read_bytes() == OLD
