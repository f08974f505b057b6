"""The state folder: what others plant in it is neither followed, nor changed, nor believed."""

import grp
import os
import pwd
from collections.abc import Callable
from pathlib import Path

import pytest
from unit.planted import a_fifo, a_folder, a_hard_link, a_link

import mpx
from mpx.engine.endpoint import FileInfo, Kind
from mpx.errors import UsageError
from mpx.files.state_folder import StateFolder
from mpx.location import Location
from mpx.transfer.journal import Journal, copy_tag, leftovers
from mpx.transfer.journal_reader import Unfinished
from mpx.transfer.sent_notes import Sent, SentNotes

SOURCE, DESTINATION = "/data/file", "ftp://host:2811/data/file"
TAG = copy_tag(SOURCE, DESTINATION)
JOURNAL, NEW, LOCK = f"{TAG}.journal", f"{TAG}.new", f"{copy_tag('', DESTINATION)}.lock"
PRIVATE = b'{"mpx": 1, "source": "", "destination": "", "boot": ""}\n'


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("MPX_STATE_DIR", str(folder))
    return folder


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    file = tmp_path / "victim"
    file.write_bytes(PRIVATE)
    file.chmod(0o640)
    return file


def a_link_to_nothing(name: Path, victim: Path) -> None:
    name.symlink_to(victim.with_name("new"))


PLANTED = [a_link, a_link_to_nothing, a_hard_link, a_fifo, a_folder]
Plant = Callable[[Path, Path], None]


def is_untouched(victim: Path) -> bool:
    return (
        victim.read_bytes() == PRIVATE
        and victim.stat().st_mode & 0o777 == 0o640
        and not victim.with_name("new").exists()
    )


@pytest.mark.parametrize("plant", PLANTED)
@pytest.mark.parametrize("name", [JOURNAL, LOCK])
def test_what_was_planted_is_an_error(state: Path, victim: Path, name: str, plant: Plant) -> None:
    plant(state / name, victim)
    with pytest.raises(UsageError, match=f"{name} (is not a regular file|has another name)"):
        Journal(SOURCE, DESTINATION)
    assert is_untouched(victim)
    if name == JOURNAL:
        with pytest.raises(UsageError, match=name):
            list(leftovers())
    else:
        assert list(leftovers()) == []
    assert is_untouched(victim)


@pytest.mark.parametrize("plant", PLANTED)
def test_a_new_journal_is_created_and_never_found(state: Path, victim: Path, plant: Plant) -> None:
    plant(state / NEW, victim)
    if plant is a_folder:
        with pytest.raises(UsageError, match=JOURNAL):
            Journal(SOURCE, DESTINATION)
        return
    journal = Journal(SOURCE, DESTINATION)
    journal.begin(Unfinished("a", ".a", 10, None))
    journal.arrived("a", [(0, 10)])
    journal.close()
    assert (state / JOURNAL).is_file()
    assert (state / JOURNAL).stat().st_mode & 0o777 == 0o600
    assert is_untouched(victim)


def test_a_journal_that_is_swapped_while_it_is_written_gets_no_line_elsewhere(
    state: Path, victim: Path
) -> None:
    journal = Journal(SOURCE, DESTINATION)
    (state / JOURNAL).unlink()
    (state / JOURNAL).symlink_to(victim)
    journal.begin(Unfinished("a", ".a", 10, None))
    journal.close()
    assert is_untouched(victim)


@pytest.mark.parametrize("plant", PLANTED)
def test_notes_of_what_was_sent_are_not_kept_elsewhere(state: Path, victim: Path, plant: Plant) -> None:
    plant(state / "sent.sqlite", victim)
    notes = SentNotes(Location("ftp", "/up", "host", 21))
    notes.record([Sent("/a", 5, 1.0, 100.0)])
    assert not notes.knows("/a", FileInfo(Kind.FILE, 5, 1.0), FileInfo(Kind.FILE, 5, 100.0))
    assert is_untouched(victim)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another account")
def test_a_journal_of_another_account_is_not_believed(state: Path) -> None:
    journal = Journal(SOURCE, DESTINATION)
    journal.begin(Unfinished("a", ".a", 10, None))
    journal.arrived("a", [(0, 10)])
    journal.close()
    os.chown(state / JOURNAL, 65534, 65534)
    again = Journal(SOURCE, DESTINATION)
    assert again.unfinished == {}
    again.close()


def test_a_folder_that_everybody_may_write_in_is_refused(state: Path, tmp_path: Path) -> None:
    state.chmod(0o777)
    (tmp_path / "a").write_bytes(b"a")
    with pytest.raises(UsageError, match=r"everybody may write in .*state.*chmod o-w.*MPX_STATE_DIR"):
        mpx.copy(str(tmp_path / "a"), str(tmp_path / "b"))
    state.chmod(0o755)
    mpx.copy(str(tmp_path / "a"), str(tmp_path / "b"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to any group")
def test_a_folder_that_a_group_of_others_may_write_in_is_refused(state: Path) -> None:
    state.chmod(0o775)
    StateFolder().close()  # root's own group, with no other member
    for group in (1, 65534, 54321):  # the last one has no name
        os.chown(state, 0, group)
        with pytest.raises(UsageError, match=r"its group may write in .*state.*chmod g-w.*MPX_STATE_DIR"):
            StateFolder()
    state.chmod(0o755)
    StateFolder().close()


def test_a_group_with_other_members_is_nobodys_own(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state.chmod(0o775)
    account, group = pwd.getpwuid(os.geteuid()), state.stat().st_gid
    monkeypatch.setattr(pwd, "getpwuid", lambda _: pwd.struct_passwd((*account[:3], group, *account[4:])))
    monkeypatch.setattr(grp, "getgrgid", lambda _: grp.struct_group((account.pw_name, "x", group, members)))
    members = [account.pw_name]
    StateFolder().close()
    members = [account.pw_name, "another"]
    with pytest.raises(UsageError, match="its group may write"):
        StateFolder()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another account")
def test_a_folder_of_another_account_is_refused(state: Path) -> None:
    os.chown(state, 65534, 65534)
    with pytest.raises(UsageError, match=r"belongs to another account .*MPX_STATE_DIR"):
        StateFolder()
    assert list(state.iterdir()) == []


def test_it_is_made_for_its_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPX_STATE_DIR", str(tmp_path / "not" / "there"))
    with StateFolder() as folder:
        assert folder.path.stat().st_mode & 0o777 == 0o700


def test_a_link_to_the_folder_is_the_users_own_choice(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "state")
    monkeypatch.setenv("MPX_STATE_DIR", str(tmp_path / "link"))
    Journal(SOURCE, DESTINATION).close()


def test_nobody_knows_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """As for a user id of a container."""
    for variable in ("MPX_STATE_DIR", "XDG_STATE_HOME", "HOME"):
        monkeypatch.delenv(variable, raising=False)

    def nobody(_: int) -> None:
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    with pytest.raises(UsageError, match=r"no home for the journals is known of user id .*MPX_STATE_DIR"):
        StateFolder()
