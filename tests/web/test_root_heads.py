"""Heads that name servers of others, and servers that do not know what is there: no file is lost."""

import contextlib
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from web.servers.private_network import servers_folder
from web.servers.root_server import RootServer, root_server
from web.servers.scripted_root import (
    NOT_AUTHORIZED,
    NOT_FOUND,
    Answers,
    Reply,
    fine,
    led_to,
    refused,
    scripted_root,
)
from web.servers.xrootd import ACCOUNT

import mpx as api
from mpx.errors import MpxError

HEAD = {"role": "manager"}
OF_THE_HEAD = {"role": "server", "cid": "1213localhost"}
INVALID_REQUEST = 3006
NONE = refused(NOT_FOUND, "no such file")
ANOTHER = fine(b"1 2 48 1700000000\0")
OLD, NEW = b"work of years", b"new one"


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[RootServer, RootServer]]:
    """One that takes what is uploaded, and one of somebody else, which has a file of that name."""
    monkeypatch.setenv("BEARER_TOKEN", "")
    with contextlib.ExitStack() as held:
        root = held.enter_context(servers_folder())
        ours, other = (held.enter_context(root_server(root / name)) for name in ("ours", "other"))
        _have(other.folder)
        yield ours, other


def _have(folder: Path) -> None:
    (folder / "file").write_bytes(OLD)
    shutil.chown(folder / "file", ACCOUNT, ACCOUNT)


@contextlib.contextmanager
def _head(
    leads_to: int, *names: int, located: Reply | None = None, told: Mapping[str, str] = HEAD
) -> Iterator[str]:
    """The URL of a file at a head: it leads to one server, and says that others have the file, too.

    These are asked what the old file is. `located`: what it says instead.
    """

    def answers(asked: str, of: list[str]) -> Reply:
        if asked != "locate":
            return led_to(names[0] if names and (asked, of) == ("stat", ["/file"]) else leads_to)
        if located is not None:
            return located
        return fine(" ".join(f"Sw[::127.0.0.1]:{port}" for port in (leads_to, *names)).encode() + b"\0")

    with scripted_root(answers, told) as port:
        yield f"root://localhost:{port}//file"


def _replace(here: Path, url: str) -> api.Report:
    (here / "file").write_bytes(NEW)
    return api.copy(str(here / "file"), url)


def test_nothing_is_done_at_a_server_that_is_of_no_such_cluster(
    here: Path, servers: tuple[RootServer, RootServer]
) -> None:
    ours, other = servers
    _have(ours.folder)
    with (
        _head(ours.port, other.port) as url,
        pytest.raises(MpxError, match=f"{other.port} has an older file of that name, as localhost"),
    ):
        _replace(here, url)
    assert [path.name for path in other.folder.iterdir()] == ["file"]
    assert (ours.folder / "file").read_bytes() == OLD


def test_nobody_leads_to_another(here: Path, servers: tuple[RootServer, RootServer]) -> None:
    """A server of the cluster may lead whoever would rename or remove something to somebody else's."""
    ours, other = servers
    _have(ours.folder)

    def answers(asked: str, names: list[str]) -> Reply:
        is_there = asked == "stat" and names == ["/file"]
        if is_there:
            return fine(b"1 13 48 1700000000\0")
        return NONE if asked == "stat" else led_to(other.port)

    with (
        scripted_root(answers, OF_THE_HEAD) as port,
        _head(ours.port, port) as url,
        pytest.raises(MpxError, match=f"{port} has an older file of that name, which stays"),
    ):
        _replace(here, url)
    assert (other.folder / "file").read_bytes() == OLD
    assert (ours.folder / "file").read_bytes() == OLD


def test_a_head_that_does_not_say_where_older_files_are(
    here: Path, servers: tuple[RootServer, RootServer]
) -> None:
    ours, _ = servers
    _have(ours.folder)
    with (
        _head(ours.port, located=refused(NOT_AUTHORIZED, "not for you")) as url,
        pytest.raises(MpxError, match="not for you"),
    ):
        _replace(here, url)
    assert (ours.folder / "file").read_bytes() == OLD


def test_a_head_below_that_does_not_say_where_older_files_are(
    here: Path, servers: tuple[RootServer, RootServer]
) -> None:
    ours, _ = servers
    _have(ours.folder)
    with scripted_root(lambda *_: refused(NOT_AUTHORIZED, "not for you"), HEAD) as below:
        located = fine(f"Sw[::127.0.0.1]:{ours.port} Mw[::127.0.0.1]:{below}\0".encode())
        with (
            _head(ours.port, located=located) as url,
            pytest.raises(MpxError, match=r"not all servers of localhost:[0-9]+ say"),
        ):
            _replace(here, url)
    assert (ours.folder / "file").read_bytes() == OLD


def test_who_does_not_say_whether_it_leads_to_others(
    here: Path, servers: tuple[RootServer, RootServer]
) -> None:
    ours, _ = servers
    _have(ours.folder)
    with (
        _head(ours.port, told={**HEAD, "role is refused": str(NOT_AUTHORIZED)}) as url,
        pytest.raises(MpxError, match="does not say whether it leads to other servers"),
    ):
        _replace(here, url)
    assert (ours.folder / "file").read_bytes() == OLD
    with _head(ours.port, told={**HEAD, "role is refused": str(INVALID_REQUEST)}) as url:  # it knows no heads
        assert _replace(here, url).status == "done"
    assert (ours.folder / "file").read_bytes() == NEW


def _stores(folder: Path, refuses: set[int], number: int, partial: Reply = NONE) -> Answers:
    """What a server answers that stores there, and knows of no partial files; it may refuse to rename."""

    def answers(asked: str, names: list[str]) -> Reply:
        paths = [folder / name.strip("/") for name in names]
        if asked == "stat" and re.search(r"(?<!-old)\.part\Z", paths[0].name):
            return partial
        if not paths[0].exists():
            return NONE
        if asked == "stat":
            return fine(b"1 %d 48 1700000000\0" % paths[0].stat().st_size)
        if asked == "mv" and number in refuses:
            return refused(NOT_AUTHORIZED, "not yours")
        paths[0].rename(paths[1]) if asked == "mv" else paths[0].unlink()
        return fine()

    return answers


@pytest.mark.parametrize("partial", [NONE, ANOTHER])
def test_who_does_not_know_what_another_has_stored(
    here: Path, servers: tuple[RootServer, RootServer], partial: Reply
) -> None:
    """Two servers of one storage, where one says that what the other has written is missing, as NFS may."""
    ours, _ = servers
    _have(ours.folder)
    answers = _stores(ours.folder, set(), 0, partial)
    with scripted_root(answers, OF_THE_HEAD) as port, _head(ours.port, port) as url:
        assert _replace(here, url).status == "done"
    assert [path.read_bytes() for path in ours.folder.iterdir()] == [NEW]


def test_whoever_loses_the_new_file_with_the_old_one_has_not_copied(
    here: Path, servers: tuple[RootServer, RootServer]
) -> None:
    ours, other = servers
    _have(ours.folder)
    stores = _stores(other.folder, set(), 0)

    def answers(asked: str, names: list[str]) -> Reply:
        if asked == "rm":
            (ours.folder / "file").unlink()
        return stores(asked, names)

    with (
        scripted_root(answers, OF_THE_HEAD) as port,
        _head(ours.port, port) as url,
        pytest.raises(MpxError, match=f"{ours.port} has renamed it, and now has nothing"),
    ):
        _replace(here, url)


def test_an_old_partial_file_is_not_the_new_one(here: Path, servers: tuple[RootServer, RootServer]) -> None:
    ours, other = servers
    answers = _stores(other.folder, set(), 0, ANOTHER)
    with scripted_root(answers, OF_THE_HEAD) as port, _head(ours.port, port) as url:
        assert _replace(here, url).status == "done"
    assert [path.read_bytes() for path in ours.folder.iterdir()] == [NEW]
    assert not [*other.folder.iterdir()]


def test_a_head_that_is_named_by_its_address(here: Path, servers: tuple[RootServer, RootServer]) -> None:
    """The servers name it by its name, which they may be asked for the address of."""
    ours, other = servers
    _have(ours.folder)
    with (
        scripted_root(_stores(other.folder, set(), 0), OF_THE_HEAD) as port,
        _head(ours.port, port) as url,
    ):
        assert _replace(here, url.replace("localhost", "127.0.0.1")).status == "done"
    assert not [*other.folder.iterdir()]


def test_what_was_put_aside_is_put_back_where_the_new_file_gets_no_name(
    here: Path, servers: tuple[RootServer, RootServer]
) -> None:
    ours, other = servers
    (ours.folder / "file/below").mkdir(parents=True)
    for path in (ours.folder / "file", ours.folder / "file/below"):
        shutil.chown(path, ACCOUNT, ACCOUNT)
    answers = _stores(other.folder, set(), 0)
    with (
        scripted_root(answers, OF_THE_HEAD) as port,
        _head(ours.port, port) as url,
        pytest.raises(MpxError, match="cannot rename"),
    ):
        _replace(here, url)
    assert [(path.name, path.read_bytes()) for path in other.folder.iterdir()] == [("file", OLD)]


def test_what_was_put_aside_is_put_back_where_another_server_refuses_that(
    here: Path, servers: tuple[RootServer, RootServer]
) -> None:
    ours, other = servers
    _have(ours.folder)
    second = other.folder / "second"
    second.mkdir()
    _have(second)
    refuses: set[int] = set()
    folders = other.folder, second
    with contextlib.ExitStack() as held:
        ports = [
            held.enter_context(scripted_root(_stores(folder, refuses, number), OF_THE_HEAD))
            for number, folder in enumerate(folders)
        ]
        refuses.add(ports.index(max(ports, key=str)))  # the last one that is asked
        url = held.enter_context(_head(ours.port, *ports))
        with pytest.raises(MpxError, match="has an older file of that name, which stays: not yours"):
            _replace(here, url)
    for folder in folders:
        assert [path.read_bytes() for path in folder.iterdir() if path.is_file()] == [OLD]
        assert (folder / "file").exists()


def test_what_a_copy_has_left_aside_is_removed_by_the_next(
    here: Path, servers: tuple[RootServer, RootServer]
) -> None:
    ours, other = servers
    stores = _stores(other.folder, set(), 0)

    def answers(asked: str, names: list[str]) -> Reply:
        """As if it was lost once the old file is aside."""
        is_put_back = asked == "mv" and names[1] == "/file"
        return refused(NOT_AUTHORIZED, "gone") if is_put_back else stores(asked, names)

    (ours.folder / "file/below").mkdir(parents=True)
    for path in (ours.folder / "file", ours.folder / "file/below"):
        shutil.chown(path, ACCOUNT, ACCOUNT)

    def leads(asked: str, of: list[str]) -> Reply:
        has_old = (other.folder / "file").exists()
        if asked == "locate":
            return fine(f"Sw[::127.0.0.1]:{port}\0".encode()) if has_old or "/file" not in of else NONE
        return led_to(ours.port) if of != ["/file"] else led_to(port) if has_old else NONE

    with scripted_root(answers, OF_THE_HEAD) as port, scripted_root(leads, HEAD) as head:
        url = f"root://localhost:{head}//file"
        with pytest.raises(MpxError, match="the older file is now"):
            _replace(here, url)
        assert [path.read_bytes() for path in other.folder.iterdir()] == [OLD]
        shutil.rmtree(ours.folder / "file")
        assert api.copy(str(here / "file"), url).status == "done"
    assert not [*other.folder.iterdir()]
    assert [path.read_bytes() for path in ours.folder.iterdir()] == [NEW]
