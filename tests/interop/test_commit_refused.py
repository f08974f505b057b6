"""Uploads to servers that replace nothing, rename nothing, keep no times, or prohibit some names."""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from interop.foreign_servers import ProFtpd
from interop.scripted_server import Dialogue
from interop.storing_server import StoringDialogue, StoringServer
from mpx_command import mpx
from sites import make

from mpx import CopyOptions, copy
from mpx.errors import ConnectionLost, DestinationError, IsThere, NotRenamed, UsageError
from mpx.report import Severity

Answer = Callable[[Dialogue, str], str | None]


def storing(dialogue: Dialogue) -> StoringDialogue:
    assert isinstance(dialogue, StoringDialogue)
    return dialogue


def no(*_: object) -> str:
    return "550 Permission denied"


def names(server: StoringServer) -> list[str]:
    return sorted(server.files)


# --- RNTO that does not replace --------------------------------------------------------------------------


def keeps_old(code: str = "553 file exists") -> Answer:
    def rename(dialogue: Dialogue, name: str) -> str:
        server = storing(dialogue)
        if name not in server.server.files:
            return server._rnto(name)
        server.asked = None
        return code

    return rename


def refusing_of(verb: str, name: str) -> dict[str, Answer]:
    """Have a server refuse a command of one name."""

    def answer(dialogue: Dialogue, argument: str) -> str:
        kept = getattr(storing(dialogue), f"_{verb.lower()}")
        if argument == name:
            storing(dialogue).asked = None
            return no()
        return str(kept(argument))

    return {verb: answer}


@pytest.mark.parametrize("code", ["553 file exists", "550 ", "450 Datei existiert bereits", "521 exists"])
def test_an_old_file_gives_way(code: str, tmp_path: Path) -> None:
    source = make(tmp_path / "x", 1000)
    with StoringServer({"RNTO": keeps_old(code)}) as server:
        server.files["/x"] = b"old"
        copy(str(source), server.url + "/x", CopyOptions(retries=1))
        assert server.files == {"/x": source.read_bytes()}


def test_a_file_that_comes_meanwhile_gives_no_way_where_none_is_to_be_replaced(tmp_path: Path) -> None:
    source = make(tmp_path / "x", 1000)

    def rename(dialogue: Dialogue, name: str) -> str:
        storing(dialogue).server.files[name] = b"theirs"
        return keeps_old()(dialogue, name) or ""

    with StoringServer({"RNTO": rename}) as server:
        with pytest.raises(IsThere):
            copy(str(source), server.url + "/x", CopyOptions(overwrite="never"))
        assert server.files == {"/x": b"theirs"}


def test_a_tree_is_updated_where_nothing_is_replaced(tmp_path: Path) -> None:
    files = {f"/tree/{i}": make(tmp_path / f"tree/{i}", 100 + i).read_bytes() for i in range(30)}
    with StoringServer({"RNTO": keeps_old()}) as server:
        server.folders.add("/tree")
        server.files |= dict.fromkeys(list(files)[::2], b"old")
        copy(str(tmp_path / "tree"), server.url + "/tree", CopyOptions(recursive=True))
        assert server.files == files


def test_an_old_file_that_cannot_be_put_aside_is_removed_last(tmp_path: Path) -> None:
    source = make(tmp_path / "x", 1000)
    with StoringServer({"RNTO": keeps_old(), **refusing_of("RNFR", "/x")}) as server:
        server.files["/x"] = b"old"
        copy(str(source), server.url + "/x", CopyOptions(retries=1))
        assert server.files == {"/x": source.read_bytes()}


@pytest.mark.parametrize("rename", [no, lambda *_: "553 no"])
def test_where_no_new_name_is_given_the_old_file_stays(rename: Answer, tmp_path: Path) -> None:
    source = make(tmp_path / "x", 1000)
    with StoringServer({"RNTO": rename}) as server:
        server.files["/x"] = b"old"
        with pytest.raises(DestinationError):
            copy(str(source), server.url + "/x", CopyOptions(retries=1))
        assert server.files["/x"] == b"old"


def test_where_only_this_name_is_refused_the_old_file_comes_back(tmp_path: Path) -> None:
    source = make(tmp_path / "x", 1000)
    tried: list[str] = []

    def rename(dialogue: Dialogue, name: str) -> str:
        if name == "/x" and len(tried) < 2:
            tried.append(name)
            return "553 no"
        return storing(dialogue)._rnto(name)

    with StoringServer({"RNTO": rename}) as server:
        server.files["/x"] = b"old"
        with pytest.raises(DestinationError):
            copy(str(source), server.url + "/x", CopyOptions(retries=1))
        assert server.files == {"/x": b"old"}


def test_an_old_file_that_does_not_come_back_is_named(tmp_path: Path) -> None:
    def rename(dialogue: Dialogue, name: str) -> str:
        """Refuse the final name, whoever asks for it."""
        server = storing(dialogue)
        if name != "/x":
            return server._rnto(name)
        server.asked = None
        return "553 no"

    with StoringServer({"RNTO": rename}) as server:
        server.files["/x"] = b"old"
        with pytest.raises(DestinationError) as refused:
            copy(str(make(tmp_path / "x", 1000)), server.url + "/x", CopyOptions(retries=1))
        (aside,) = [name for name, content in server.files.items() if content == b"old"]
    assert f"the old file is now {aside}" in str(refused.value)


def test_never_are_both_lost(tmp_path: Path) -> None:
    """The old file can only be removed, and then the new one is refused its name all the same."""
    source = make(tmp_path / "x", 1000)
    script = {**refusing_of("RNTO", "/x"), **refusing_of("RNFR", "/x")}
    with StoringServer(script) as server:
        server.files["/x"] = b"old"
        with pytest.raises(DestinationError, match="what was sent is whole"):
            copy(str(source), server.url + "/x", CopyOptions(retries=1))
        assert list(server.files.values()) == [source.read_bytes()]


@pytest.mark.parametrize("cuts", [False, True], ids=["nobody may look", "the session is lost"])
def test_never_are_both_lost_whatever_else_fails(cuts: bool, tmp_path: Path) -> None:
    """The old file was removed, and then nobody can tell whether it is there, or the session is lost."""
    source = make(tmp_path / "x", 1000)

    def describe(dialogue: Dialogue, name: str) -> str:
        is_removed = name == "/x" and "/x" not in storing(dialogue).server.files
        return no() if is_removed and not cuts else storing(dialogue)._mlst(name)

    def remove(dialogue: Dialogue, name: str) -> str:
        reply = storing(dialogue)._dele(name)
        if cuts and name == "/x":
            storing(dialogue).cut()
        return reply

    refused = {**refusing_of("RNTO", "/x"), **refusing_of("RNFR", "/x")}
    with StoringServer({**refused, "DELE": remove, "MLST": describe}, files={"/x": b"old"}) as server:
        with pytest.raises(NotRenamed, match="what was sent is whole"):
            copy(str(source), server.url + "/x", CopyOptions(retries=1))
        assert list(server.files.values()) == [source.read_bytes()]


def test_a_new_file_that_does_not_get_its_partial_name_back_is_named(tmp_path: Path) -> None:
    """Whether it can be renamed is tried before the old file is removed; it can only once."""
    source = make(tmp_path / "x", 1000)

    def rename(dialogue: Dialogue, name: str) -> str:
        return storing(dialogue)._rnto(name) if name.endswith("-old.part") else no()

    with StoringServer({"RNTO": rename, **refusing_of("RNFR", "/x")}) as server:
        server.files["/x"] = b"old"
        with pytest.raises(NotRenamed) as refused:
            copy(str(source), server.url + "/x", CopyOptions(retries=1))
        (stray,) = [name for name, content in server.files.items() if content == source.read_bytes()]
        assert server.files["/x"] == b"old"
    assert f"what was sent is whole, as {stray}" in str(refused.value)


def test_the_old_file_is_not_removed_where_nothing_can_be_renamed(tmp_path: Path) -> None:
    source = make(tmp_path / "x", 1000)
    with StoringServer({"RNTO": lambda *_: "553 no", **refusing_of("RNFR", "/x")}) as server:
        server.files["/x"] = b"old"
        with pytest.raises(DestinationError, match="--in-place"):
            copy(str(source), server.url + "/x", CopyOptions(retries=1))
        assert server.files["/x"] == b"old"


@pytest.mark.parametrize("retries", [2, 0])
@pytest.mark.parametrize("after", ["the old file was put aside", "the new one had its name"])
def test_a_session_lost_between_the_old_file_and_the_new(retries: int, after: str, tmp_path: Path) -> None:
    """With no retry the next run does it: one file is left, and that is the new one."""
    source = make(tmp_path / "x", 1000)
    cut: list[str] = []

    def rename(dialogue: Dialogue, name: str) -> str:
        server = storing(dialogue)
        if name == "/x" and name in server.server.files:
            server.asked = None
            return "553 file exists"
        reply = server._rnto(name)
        if not cut and name.endswith("-old.part" if after == "the old file was put aside" else "/x"):
            cut.append(name)
            server.cut()
        return reply

    with StoringServer({"RNTO": rename}) as server:
        server.files["/x"] = b"old"
        options = CopyOptions(retries=retries)
        if retries:
            copy(str(source), server.url + "/x", options)
        else:
            with pytest.raises(ConnectionLost):
                copy(str(source), server.url + "/x", options)
            assert source.read_bytes() in server.files.values()
            copy(str(source), server.url + "/x", options)
        assert server.files == {"/x": source.read_bytes()}
        assert cut


def test_an_old_file_that_was_put_aside_comes_back_when_the_copy_is_discarded(tmp_path: Path) -> None:
    source = make(tmp_path / "x", 1000)

    def rename(dialogue: Dialogue, name: str) -> str:
        server = storing(dialogue)
        if name == "/x" and name in server.server.files:
            server.asked = None
            return "553 file exists"
        reply = server._rnto(name)
        if name.endswith("-old.part"):
            server.cut()
        return reply

    with StoringServer({"RNTO": rename}) as server:
        server.files["/x"] = b"old"
        with pytest.raises(ConnectionLost):
            copy(str(source), server.url + "/x", CopyOptions(retries=0))
        assert "/x" not in server.files and b"old" in server.files.values()
        ended = mpx("unfinished", "--discard")
        assert ended.code == 0 and "the old file has its name again" in ended.out, (ended.out, ended.err)
        assert server.files == {"/x": b"old"}


def test_an_old_file_that_is_not_deleted_is_named(tmp_path: Path) -> None:
    source = make(tmp_path / "x", 1000)
    with StoringServer({"RNTO": keeps_old(), "DELE": no}) as server:
        server.files["/x"] = b"old"
        report = copy(str(source), server.url + "/x", CopyOptions(retries=1))
        assert server.files["/x"] == source.read_bytes()
        assert any("does not delete the old file" in note for note in report.notes)


# --- drop boxes -----------------------------------------------------------------------------------------

DROP_BOX: dict[str, Answer] = {"RNFR": no, "DELE": no}


def test_a_drop_box_is_told_of_the_option(tmp_path: Path) -> None:
    source = make(tmp_path / "up", 1000)
    with StoringServer(DROP_BOX) as server, pytest.raises(DestinationError, match="--in-place"):
        copy(str(source), server.url + "/up", CopyOptions(retries=1))


@pytest.mark.parametrize("size_bytes", [0, 1000, 5_000_000])
def test_in_place(size_bytes: int, tmp_path: Path) -> None:
    source = make(tmp_path / "up", size_bytes)
    with StoringServer(DROP_BOX) as server:
        copy(str(source), server.url + "/up", CopyOptions(in_place=True))
        assert server.files == {"/up": source.read_bytes()}


@pytest.mark.parametrize("in_place", [True, False])
def test_a_part_that_a_drop_box_keeps_is_named(in_place: bool, tmp_path: Path) -> None:
    """Of the first run, without the option; it is no longer listed as unfinished."""
    source = make(tmp_path / "up", 1000)
    with StoringServer(DROP_BOX) as server:
        with pytest.raises(DestinationError, match="--in-place"):
            copy(str(source), server.url + "/up", CopyOptions(retries=1))
        (part,) = server.files
        if not in_place:  # somebody else has put it there
            server.files["/up"] = source.read_bytes()
            server.times["/up"] = f"{datetime.fromtimestamp(source.stat().st_mtime, UTC):%Y%m%d%H%M%S}"
        report = copy(str(source), server.url + "/up", CopyOptions(in_place=in_place))
        assert set(server.files) == {part, "/up"}
        assert report.files.moved == in_place
        assert any(part in note.text and "stays" in note.text for note in report.noted(Severity.NOTICE))


def test_in_place_what_is_refused_is_not_removed(tmp_path: Path) -> None:
    source = make(tmp_path / "up", 1000)
    with StoringServer({"STOR": no}) as server:
        server.files["/up"] = b"old"
        with pytest.raises(DestinationError):
            copy(str(source), server.url + "/up", CopyOptions(in_place=True))
        assert server.files == {"/up": b"old"}


def test_in_place_is_for_uploads(tmp_path: Path) -> None:
    make(tmp_path / "a")
    with pytest.raises(UsageError, match="--in-place"):
        copy(str(tmp_path / "a"), str(tmp_path / "b"), CopyOptions(in_place=True))


@pytest.mark.peers
def test_a_real_drop_box(tmp_path: Path, with_password: None) -> None:
    source = make(tmp_path / "up", 100_000)
    (tmp_path / "ftp").mkdir()
    limits = "<Limit RNFR RNTO DELE RETR>\nDenyAll\n</Limit>\n"
    with ProFtpd(tmp_path / "ftp", limits) as server:
        with pytest.raises(DestinationError, match="--in-place"):
            copy(str(source), server.url + "first", CopyOptions(retries=1))
        copy(str(source), server.url + "second", CopyOptions(in_place=True))
        assert (server.root / "second").read_bytes() == source.read_bytes()


# --- names with a leading dot ---------------------------------------------------------------------------


def without_dots(dialogue: Dialogue, name: str) -> str:
    return "553 Prohibited file name" if "/." in name else storing(dialogue)._stor(name)


def closed_at_once(dialogue: Dialogue, argument: str) -> str:
    reply = dialogue._epsv(argument)
    dialogue.close()
    return reply


def test_a_server_that_prohibits_dots_is_told_of_the_option(tmp_path: Path) -> None:
    source = make(tmp_path / "up", 1000)
    with (
        StoringServer({"STOR": without_dots}) as server,
        pytest.raises(DestinationError, match="--partial-prefix"),
    ):
        copy(str(source), server.url + "/up", CopyOptions(retries=1))


def test_a_refusal_is_read_though_the_port_is_closed(tmp_path: Path) -> None:
    """The server closes its port for data before it refuses the name, so that nobody can connect."""

    source = make(tmp_path / "up", 1000)
    with (
        StoringServer({"STOR": without_dots, "EPSV": closed_at_once}) as server,
        pytest.raises(DestinationError, match="--partial-prefix"),
    ):
        copy(str(source), server.url + "/up", CopyOptions(retries=1))


@pytest.mark.parametrize("prefix", ["", "part-", "\u00fc_"])
def test_the_prefix_of_partial_names(prefix: str, tmp_path: Path) -> None:
    name = "x" * 250
    source = make(tmp_path / name, 1000)
    stored: list[str] = []

    def store(dialogue: Dialogue, name: str) -> str:
        stored.append(name)
        return without_dots(dialogue, name)

    script: dict[str, Answer] = {"STOR": store, "RNTO": keeps_old()}
    with StoringServer(script) as server:
        server.files[f"/{name}"] = b"old"
        copy(str(source), server.url + f"/{name}", CopyOptions(partial_prefix=prefix))
        assert server.files == {f"/{name}": source.read_bytes()}
        assert all(each.startswith(f"/{prefix}x") and len(os.fsencode(each)) <= 256 for each in stored)


@pytest.mark.parametrize("prefix", ["a/b", "\r\n", "\0", "x" * 33])
def test_a_prefix_that_is_none(prefix: str) -> None:
    with pytest.raises(UsageError, match="--partial-prefix"):
        CopyOptions(partial_prefix=prefix)


@pytest.mark.peers
def test_a_real_server_that_prohibits_dots(tmp_path: Path, with_password: None) -> None:
    source = make(tmp_path / "up", 100_000)
    (tmp_path / "ftp").mkdir()
    with ProFtpd(tmp_path / "ftp", "PathDenyFilter (^|/)\\.\n") as server:
        with pytest.raises(DestinationError, match="--partial-prefix"):
            copy(str(source), server.url + "up", CopyOptions(retries=1))
        copy(str(source), server.url + "up", CopyOptions(partial_prefix="unfinished-"))
        assert [path.name for path in server.root.iterdir()] == ["up"]
        assert (server.root / "up").read_bytes() == source.read_bytes()
