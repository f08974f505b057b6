"""Servers that send without end: a copy ends by itself, with a clear error, and without much memory.

No time is checked but that of a hang; each copy has time-outs of a second or two and no retries.
"""

import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from interop.mpx_process import measured
from interop.scripted_server import Dialogue, Script, ScriptedServer, without_end
from random_bytes import random_bytes

import mpx
from mpx.endpoints.ftp import folder_listing
from mpx.endpoints.ftp.framing import BlockHeader
from mpx.transfer import tree_walk

FAST = ("--timeout", "2s", "--connect-timeout", "2s", "--retries", "0", "-q")
FASTER = ("--timeout", "1s", "--connect-timeout", "1s")  # of those that cannot but fail
MOST_GROWTH_KIB = 100 * 1024
DRIP_S = 0.3  # between two bytes, well below the time-out


def drip(text: bytes) -> Iterator[bytes]:
    for byte in itertools.cycle(text):
        time.sleep(DRIP_S)
        yield bytes([byte])


def numbered(line: str) -> Iterator[bytes]:
    return ("".join(line % (1000 * i + j) for j in range(1000)).encode() for i in itertools.count())


ENDLESS: dict[str, Callable[[], Iterator[bytes]]] = {
    "preliminary replies": lambda: itertools.repeat(b"150 wait\r\n" * 1000),
    "preliminary replies, slowly": lambda: (time.sleep(DRIP_S) or b"120 wait\r\n" for _ in itertools.count()),
    "markers without progress": lambda: itertools.repeat(
        b"112-Perf Marker\r\n Stripe Bytes Transferred: 5\r\n112 End.\r\n" * 100
    ),
    "checksum markers without progress": lambda: itertools.repeat(
        b"113-m\r\n Bytes Processed: 7\r\n113 End.\r\n"
    ),
    "range markers without progress": lambda: itertools.repeat(b"111 Range Marker 0-5\r\n" * 1000),
    "a line": lambda: itertools.repeat(b"2" * 65536),
    "a reply": lambda: itertools.chain([b"211-a\r\n"], itertools.repeat(b" more\r\n" * 1000)),
    "line ends in a reply": lambda: itertools.chain([b"211-a\r\n"], itertools.repeat(b"\n" * 65536)),
    "line ends": lambda: itertools.repeat(b"\r\n" * 1000),
    "bytes of a reply, slowly": lambda: itertools.chain([b"211-a\r\n"], drip(b"x")),
    "markers of ever more bytes, slowly": lambda: (
        time.sleep(DRIP_S) or b"113-m\r\n Bytes Processed: %d\r\n113 End.\r\n" % n for n in itertools.count()
    ),
    "range markers of ever more bytes, slowly": lambda: (
        time.sleep(DRIP_S) or b"111 Range Marker 0-%d\r\n" % n for n in itertools.count()
    ),
}
LISTINGS: dict[str, Callable[[], Iterator[bytes]]] = {
    "a line": lambda: itertools.repeat(b"x" * 65536),
    "line ends, slowly": lambda: drip(b"\r\n"),
    "bytes, slowly": lambda: drip(b"Type=file;Size=1;Modify=20260101000000; a-long-name\r\n"),
    "folders": lambda: numbered("Type=dir; %d\r\n"),
    "links": lambda: numbered("Type=OS.unix=symlink;Size=1; %d\r\n"),
    "entries that do not say what they are": lambda: numbered("Size=1; %d\r\n"),
    "folders and such entries": lambda: (
        piece
        for pieces in zip(numbered("Type=dir; d%d\r\n"), numbered("Type=file; f%d\r\n"), strict=False)
        for piece in pieces
    ),
}


def folder_in_folder(dialogue: Dialogue, _: str) -> str:
    with dialogue.open_data() as data:
        dialogue.say("150 go")
        data.sendall(b"Type=dir; a\r\nType=dir; b\r\n")
    return "226 done"


def flood(pieces: Callable[[], Iterator[bytes]]) -> Callable[[Dialogue, str], None]:
    def answer(dialogue: Dialogue, _: str) -> None:
        without_end(dialogue.control, pieces())

    return answer


def run(*words: object) -> tuple[int, str, int]:
    """Run `mpx copy`; return its exit code, what it says, and the most memory that it had, in KiB."""
    return measured("copy", *FAST, *words)


@pytest.fixture(scope="module")
def usual_kib(tmp_path_factory: pytest.TempPathFactory) -> int:
    """What a copy needs where nobody lies."""
    there = tmp_path_factory.mktemp("usual")
    with ScriptedServer() as server:
        code, said, kib = run(f"{server.url}/file", there / "file")
        assert code == 0, said
        assert (there / "file").read_bytes() == server.content
    return kib


def assert_ends(
    script: Script,
    usual_kib: int,
    *words: object,
    codes: tuple[int, ...] = (6, 7),
    options: tuple[str, ...] = FASTER,
) -> str:
    with ScriptedServer(script) as server:
        code, said, kib = run(*options, *(str(word).replace("SERVER", server.url) for word in words))
    assert code in codes, said
    assert "Traceback" not in said
    assert "unexpected" not in said
    assert len(said) < 5000
    assert kib - usual_kib < MOST_GROWTH_KIB, (kib, usual_kib)
    return said


@pytest.mark.parametrize("kind", ENDLESS)
def test_an_answer_without_end(kind: str, usual_kib: int, tmp_path: Path) -> None:
    assert_ends({"FEAT": flood(ENDLESS[kind])}, usual_kib, "SERVER/file", tmp_path / "file")


@pytest.mark.parametrize(
    ("verb", "kind"),
    [
        *((verb, "preliminary replies") for verb in ("banner", "MLST", "PASV", "RETR", "STOR", "CKSM")),
        *((verb, "markers without progress") for verb in ("USER", "MODE", "EPSV", "STOR", "CKSM")),
        *((verb, "bytes of a reply, slowly") for verb in ("banner", "MODE", "EPSV", "RETR", "STOR")),
        *((verb, "markers of ever more bytes, slowly") for verb in ("MODE", "EPSV", "STOR", "CKSM")),
        ("STOR", "range markers of ever more bytes, slowly"),
    ],
)
def test_whatever_the_command(verb: str, kind: str, usual_kib: int, tmp_path: Path) -> None:
    script = {"ERET": lambda *_: "500 no", "EPSV": lambda *_: "500 no", verb: flood(ENDLESS[kind])}
    if verb == "EPSV":
        script["PASV"] = lambda *_: "500 no"  # or that would be another way
    near = tmp_path / "near"
    pair = ("SERVER/file", near)
    if verb in ("RETR", "PASV", "EPSV"):  # of MODE S
        script["MODE"] = lambda dialogue, mode: "504 no" if mode == "E" else "200 ok"
    if verb == "STOR":
        near.write_bytes(random_bytes(300_000))
        pair = (near, "SERVER/new")
    assert_ends(script, usual_kib, *pair)


# Each is read up to its bound, which is some hundred thousand entries.
MANY = ("folders", "links", "entries that do not say what they are", "folders and such entries")


def listing(kind: str) -> Script:
    def send(dialogue: Dialogue, _: str) -> None:
        with dialogue.open_data() as data:
            dialogue.say("150 go")
            without_end(data, LISTINGS[kind]())

    return {"MLSD": send}


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.long] * (kind in MANY)) for kind in LISTINGS]
)
def test_a_listing_without_end(kind: str, usual_kib: int, tmp_path: Path) -> None:
    words = ("-r", "SERVER/folder", tmp_path / "folder")
    said = assert_ends(listing(kind), usual_kib, *words, codes=(6, 7, 10), options=())
    assert "list" in said


@pytest.mark.parametrize("kind", MANY)
@pytest.mark.parametrize(("name", "bound"), [("MOST_KEPT", 20_000), ("MOST_KEPT_BYTES", 400_000)])
def test_a_listing_without_end_is_left_at_its_bound(
    kind: str, name: str, bound: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bounds are lower here, so that one is met soon."""
    monkeypatch.setattr(tree_walk, "MOST_WAITING_BYTES", 1 << 20)
    monkeypatch.setattr(folder_listing, name, bound)
    with ScriptedServer(listing(kind)) as server, pytest.raises(mpx.PartialFailure) as caught:
        options = mpx.CopyOptions(recursive=True, retries=0)
        mpx.copy(f"{server.url}/folder", str(tmp_path / "folder"), options)
    assert caught.value.report is not None
    (failure,) = caught.value.report.failures
    assert "too many" in str(failure), failure


def test_folders_without_end(usual_kib: int, tmp_path: Path) -> None:
    script: Script = {
        "MLSD": folder_in_folder,
        "MLST": lambda _, name: f"250-facts\r\n Type=dir; {name}\r\n250 end",
    }
    with ScriptedServer(script) as server:
        code, said, kib = run("--dry-run", "-r", f"{server.url}/folder", tmp_path / "folder")
    assert code == 10, said
    assert "seems to have no end" in said
    assert kib - usual_kib < MOST_GROWTH_KIB


def blocks_without_end(dialogue: Dialogue, argument: str) -> None:
    kind = dialogue.server.script["kind"](dialogue, "")
    size = int(argument.split(" ", 3)[2])
    with dialogue.open_data() as data:
        dialogue.say("150 go")
        if kind == "empty blocks":
            without_end(data, itertools.repeat(BlockHeader(0, 0, 0).pack() * 1000))
        elif kind == "the same byte":
            without_end(data, itertools.repeat((BlockHeader(0, 1, 0).pack() + b"x") * 1000))
        else:
            without_end(data, (BlockHeader(0, 1, at).pack() + b"x" for at in range(0, size, 2)))


@pytest.mark.parametrize("kind", ["empty blocks", "the same byte", "every other byte"])
def test_blocks_without_progress(kind: str, usual_kib: int, tmp_path: Path) -> None:
    assert_ends(
        {"ERET": blocks_without_end, "kind": lambda *_: kind}, usual_kib, "SERVER/file", tmp_path / "file"
    )


@pytest.mark.parametrize(
    ("verb", "reply"),
    [
        ("EPSV", "229 " + ":" * 200_000),
        ("EPSV", "229 go (|||" + "9" * 10_000 + "|)"),
        ("PASV", "227 " + "1," * 100_000),
        ("MLST", "550 c=" + "A" * 200_000),
        ("MLST", "250-a\r\n Type=file;Size=" + "9" * 10_000 + "; /file\r\n250 b"),
        ("MLST", "250-a\r\n Type=file;Size=3;Modify=" + "2" * 100_000 + "; /file\r\n250 b"),
        ("RETR", "550 " + "a" * 200_000),
        ("CKSM", "213 " + "f" * 200_000),
        ("SIZE", "213 " + "9" * 10_000),
    ],
)
def test_long_words(verb: str, reply: str, usual_kib: int, tmp_path: Path) -> None:
    """Whatever comes of them, it comes soon, and no digits break anything."""
    script: Script = {
        "MODE": lambda dialogue, mode: "504 no" if mode == "E" else "200 ok",
        "EPSV": lambda *_: "500 no",
        "PASV": Dialogue._pasv,
        verb: lambda *_: reply,
    }
    codes = (0, 2, 3, 6, 7, 8, 10)
    assert_ends(script, usual_kib, "SERVER/file", tmp_path / "file", codes=codes, options=())


LONG_REPLIES = {
    "one line": b"550 " + b"w" * 250_000 + b"\r\n",
    "of odd letters": b"550 " + "\U0001f600".encode() + b"\xff" * 250_000 + b"\r\n",
    "many lines": b"550-no\r\n" + b"ab\n" * 80_000 + b"550 no\r\n",
}


@pytest.mark.parametrize("kind", LONG_REPLIES)
def test_long_answers_to_many_questions(kind: str, usual_kib: int, tmp_path: Path) -> None:
    """Each reply is short enough, and all together are not: they are asked for together."""

    def listing_without_sizes(dialogue: Dialogue, _: str) -> str:
        with dialogue.open_data() as data:
            dialogue.say("150 go")
            data.sendall(b"".join(b"Modify=20260101000000; %d\r\n" % n for n in range(200)))
        return "226 done"

    def answer(dialogue: Dialogue, name: str) -> str | None:
        if name.rpartition("/")[2].isdigit():
            dialogue.control.sendall(LONG_REPLIES[kind])
            return None
        return dialogue.answer(dialogue.verb, name)

    script: Script = {"MLSD": listing_without_sizes, **dict.fromkeys(("SIZE", "MDTM", "CWD", "MLST"), answer)}
    words = ("-r", "SERVER/folder", tmp_path / "folder")
    said = assert_ends(script, usual_kib, *words, codes=(6, 10), options=())
    assert "bytes" in said or "folder" in said
