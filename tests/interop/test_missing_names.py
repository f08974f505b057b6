"""Whether a name is there is found out at any server, whatever its refusals say and in whatever language."""

from collections.abc import Callable
from pathlib import Path

import pytest
from interop.foreign_servers import ForeignServer, ProFtpd, PureFtpd
from interop.scripted_server import Dialogue
from interop.storing_server import StoringDialogue, StoringServer
from sites import make

from mpx import CopyOptions, copy
from mpx.engine.endpoint import FileInfo, Kind
from mpx.errors import ConnectionLost, DestinationError, MpxError
from mpx.gridftp import GridFtpEndpoint
from mpx.location import parse_location
from mpx.transfer.registry import open_endpoint

Answer = Callable[[Dialogue, str], str | None]


def endpoint(url: str) -> GridFtpEndpoint:
    end = open_endpoint(parse_location(url), CopyOptions(), lambda: False, writing=True)
    assert isinstance(end, GridFtpEndpoint)
    return end


def refusing(text: str, *verbs: str) -> dict[str, Answer]:
    """Have a server say this where it refuses."""

    def answer(dialogue: Dialogue, name: str, *, verb: str) -> str | None:
        said = getattr(type(dialogue), f"_{verb.lower()}")(dialogue, name)
        return text.format(name) if said is not None and said.startswith("5") else said

    return {
        verb: lambda dialogue, name, verb=verb: answer(dialogue, name, verb=verb)
        for verb in (verbs or ("MLST", "SIZE", "MDTM", "CWD", "MLSD", "MKD", "DELE"))
    }


# --- real servers ----------------------------------------------------------------------------------------


@pytest.mark.peers
def test_each_server_is_asked_right(foreign: ForeignServer) -> None:
    (foreign.root / "folder").mkdir()
    (foreign.root / "file").write_bytes(b"12345")
    end = endpoint(foreign.url)
    names = ["/file", "/missing", "/folder", "/no/such", "/file/below"]
    found = end.stats(names)
    kinds = [info.kind if isinstance(info, FileInfo) else info for info in found]
    assert kinds == [Kind.FILE, None, Kind.FOLDER, None, None]
    assert isinstance(found[0], FileInfo)
    assert found[0].size_bytes == 5


@pytest.mark.peers
@pytest.mark.parametrize("kind", [ProFtpd, PureFtpd])
def test_what_is_not_permitted_is_not_missing(
    kind: type[ForeignServer], tmp_path: Path, with_password: None
) -> None:
    make(tmp_path / "ftp/locked/file")
    (tmp_path / "ftp/locked").chmod(0)
    with kind(tmp_path / "ftp") as server:
        (found,) = endpoint(server.url).stats(["/locked/file"])
    assert isinstance(found, DestinationError)


def test_where_a_server_is_busy_nothing_is_said_of_a_name() -> None:
    """Whoever asked does so once more, over another session."""

    def locked(dialogue: Dialogue, folder: str) -> str | None:
        assert isinstance(dialogue, StoringDialogue)
        return dialogue._mlsd(folder) if folder == "/" else "550 Permission denied"

    script: dict[str, Answer] = dict.fromkeys(
        ("MLST", "SIZE", "MDTM", "CWD"), lambda *_: "450 too many users, try again"
    )
    with (
        StoringServer({**script, "MLSD": locked}, files={"/d/x": b"1"}) as server,
        pytest.raises(ConnectionLost, match="try again"),
    ):
        endpoint(server.url + "/").stats(["/d/x"])


# --- servers in other languages -------------------------------------------------------------------------

REFUSALS = (
    "550 Datei oder Verzeichnis nicht gefunden: {}",
    "550 {} : Aucun fichier ou dossier de ce type",
    "550 Can't check for file existence",
    "550 \u30d5\u30a1\u30a4\u30eb\u304c\u3042\u308a\u307e\u305b\u3093",
    "550 ",
    "550",
    "553 {}",
    "450 {}",
)


@pytest.mark.parametrize("text", REFUSALS)
def test_words_of_their_own(text: str, tmp_path: Path) -> None:
    source = make(tmp_path / "new", 1000)
    with StoringServer(refusing(text)) as server:
        server.files["/old"] = b"old"
        found = endpoint(server.url + "/").stats(["/new", "/old", "/", "/no/such"])
        kinds = [info.kind if isinstance(info, FileInfo) else info for info in found]
        assert kinds == [None, Kind.FILE, Kind.FOLDER, None]
        copy(str(source), server.url + "/deep/er/new")
        assert server.files["/deep/er/new"] == source.read_bytes()


@pytest.mark.parametrize("text", ["550 Zugriff verweigert", "550", "550 Permission denied"])
def test_what_a_server_does_not_describe_but_lists_is_there(text: str, tmp_path: Path) -> None:
    """Such a file is not replaced where the user forbids it."""
    source = make(tmp_path / "new", 1000)
    hidden: dict[str, Answer] = {
        verb: lambda dialogue, name, verb=verb: (
            text if name == "/kept" else getattr(type(dialogue), f"_{verb.lower()}")(dialogue, name)
        )
        for verb in ("MLST", "SIZE", "MDTM")
    }
    with StoringServer(hidden) as server:
        server.files["/kept"] = b"kept"
        try:
            copy(str(source), server.url + "/kept", CopyOptions(overwrite="never"))
        except DestinationError as error:
            assert "Permission denied" in str(error)
        assert server.files == {"/kept": b"kept"}


def test_missing_names_cost_one_question_each_once_the_words_are_known(tmp_path: Path) -> None:
    with StoringServer(refusing("550 {}: nicht da")) as server:
        end = endpoint(server.url + "/")
        assert end.stats([f"/{i}" for i in range(5)]) == [None] * 5
        before = len(server.heard)
        assert end.stats([f"/{i}" for i in range(5, 105)]) == [None] * 100
        assert server.heard[before:] == ["MLST", "SIZE"] * 100


# --- servers that know few questions ---------------------------------------------------------------------


def unknown(dialogue: Dialogue, argument: str) -> str:
    return "500 not understood"


@pytest.mark.parametrize("verbs", [("MLST",), ("MLST", "SIZE"), ("MLST", "SIZE", "MDTM")])
def test_what_is_not_understood_is_asked_another_way(verbs: tuple[str, ...]) -> None:
    with StoringServer(dict.fromkeys(verbs, unknown)) as server:
        server.files["/file"] = b"12345"
        server.folders.add("/folder")
        found = endpoint(server.url + "/").stats(["/file", "/folder", "/missing"])
        kinds = [info.kind if isinstance(info, FileInfo) else info for info in found]
        assert kinds == [Kind.FILE, Kind.FOLDER, None]
        assert isinstance(found[0], FileInfo)
        assert found[0].size_bytes in (5, None)


def test_where_nothing_at_all_can_be_asked_nothing_is_taken_for_missing() -> None:
    script = dict.fromkeys(("MLST", "SIZE", "MDTM", "MLSD", "LIST"), unknown)
    with StoringServer(script) as server:
        (found,) = endpoint(server.url + "/").stats(["/file"])
        assert isinstance(found, MpxError)


def test_a_folder_that_may_be_entered_and_not_listed() -> None:
    script = {**refusing("550 nein"), "MLSD": lambda *_: "550 nein"}
    with StoringServer(script) as server:
        server.files["/file"] = b"1"
        found = endpoint(server.url + "/").stats(["/missing", "/file"])
        assert found[0] is None
        assert isinstance(found[1], FileInfo)
