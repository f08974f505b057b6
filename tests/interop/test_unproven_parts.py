"""Servers that do not begin files where they are asked to: what gets a name has the right bytes."""

import random
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from interop.lying_server import Heard, LyingServer

import mpx
from mpx.engine.ranges import RangeSet
from mpx.transfer.fallback import WHOLE_FILES

SIZE = 20 * 1024 * 1024 + 11
RANDOM = random.Random(24).randbytes(SIZE)
SPARSE = bytes(SIZE // 2) + RANDOM[:1000] + bytes(SIZE - SIZE // 2 - 1000)  # overlaps prove nothing of it


def sticky() -> Callable[[Heard, int], int]:
    """Keep the last offset until another is named."""
    kept: dict[int, int] = {}

    def begins(heard: Heard, offset: int) -> int:
        latest = next((verb for verb in reversed(heard.commands) if verb in ("REST", "RETR")), "")
        if latest == "REST":
            kept[heard.number] = offset
        return kept.get(heard.number, 0)

    return begins


OFFSETS = {
    "ignored": lambda _, __: 0,
    "honoured when it was sent before PASV": lambda heard, offset: (
        offset if heard.commands[-2:] == ["REST", "PASV"] else 0
    ),
    "honoured once": lambda heard, offset: offset if heard.retrieves == 0 else 0,
    "honoured twice": lambda heard, offset: offset if heard.retrieves < 2 else 0,
    "not honoured at first": lambda heard, offset: offset if heard.retrieves else 0,
    "ignored by every other session": lambda heard, offset: offset if heard.number % 2 else 0,
    "of few bits": lambda _, offset: offset % (1 << 23),
    "bounded": lambda _, offset: min(offset, 1 << 23),
    "in blocks": lambda _, offset: offset // 512 * 512,
    "one too far": lambda _, offset: offset + 1 if offset else 0,
}
PARTS = {
    "no offset": lambda _, __, length: (0, length),
    "no length": lambda _, offset, __: (offset, SIZE),
    "neither": lambda _, __, ___: (0, SIZE),
    "offsets of few bits": lambda _, offset, length: (offset % (1 << 22), length),
    "nothing in every other session": lambda heard, offset, length: (
        (offset if heard.number % 2 else 0),
        length,
    ),
    "lengths of few bits": lambda _, offset, length: (offset, length % (1 << 18)),
    "bounded lengths": lambda _, offset, length: (offset, min(length, 100_000)),
}


def copied(server: LyingServer, near: Path, **options: object) -> mpx.Report:
    return mpx.copy(f"{server.url}/d/file", str(near), mpx.CopyOptions(**options))


def is_noted(report: mpx.Report) -> bool:
    return sum(note.startswith(WHOLE_FILES) for note in report.notes) == 1


@pytest.mark.parametrize("content", [RANDOM, SPARSE], ids=["random", "sparse"])
@pytest.mark.parametrize("streams", [None, 1, 4])
@pytest.mark.parametrize("lie", [*OFFSETS, "sticky"])
def test_rest_in_mode_s(tmp_path: Path, lie: str, streams: int | None, content: bytes) -> None:
    begins = OFFSETS[lie] if lie in OFFSETS else sticky()
    with LyingServer({"/d/file": content}, begins=begins) as server:
        report = copied(server, tmp_path / "near", streams=streams)
    assert (tmp_path / "near").read_bytes() == content
    assert report.checksum["result"] == "unverified"
    if lie == "ignored":
        assert is_noted(report)


@pytest.mark.parametrize("streams", [None, 1, 4])
@pytest.mark.parametrize("lie", PARTS)
def test_eret_in_mode_e(tmp_path: Path, lie: str, streams: int | None) -> None:
    with LyingServer({"/d/file": SPARSE}, mode_e=True, part=PARTS[lie]) as server:
        report = copied(server, tmp_path / "near", streams=streams)
    assert (tmp_path / "near").read_bytes() == SPARSE
    assert is_noted(report) or "every other" in lie
    if lie in ("no length", "neither"):  # what counts is why we closed a connection
        assert not [note for note in report.notes if "you closed it" in note]


@pytest.mark.parametrize("odd", [0, 1])
@pytest.mark.parametrize("when", ["always", "at first", "later"])
@pytest.mark.parametrize("mode_e", [False, True], ids=["S", "E"])
def test_one_of_several_servers_behind_a_name(tmp_path: Path, mode_e: bool, when: str, odd: int) -> None:
    retrieving: set[int] = set()  # the sessions

    def is_honest(heard: Heard) -> bool:
        retrieving.add(heard.number)
        is_now = {"always": True, "at first": heard.retrieves == 0, "later": heard.retrieves > 0}[when]
        return heard.number % 2 == odd or not is_now

    lies = {
        "begins": lambda heard, offset: offset if is_honest(heard) else 0,
        "part": lambda heard, offset, length: (offset if is_honest(heard) else 0, length),
    }
    with LyingServer({"/d/file": RANDOM}, mode_e=mode_e, **lies) as server:
        copied(server, tmp_path / "near", initial_streams=4, rate_bps=200e6)
    assert (tmp_path / "near").read_bytes() == RANDOM
    assert len(retrieving) > 1


@pytest.mark.parametrize("content", [RANDOM, SPARSE], ids=["random", "sparse"])
def test_a_session_is_not_believed_for_what_the_next_one_proves(tmp_path: Path, content: bytes) -> None:
    """Each honours only offsets towards the end, and is lost with the data of a part that it did not."""
    lied: set[int] = set()  # sessions

    def begins(heard: Heard, offset: int) -> int:
        if offset in range(1, SIZE // 2):
            lied.add(heard.number)
            return 0
        return offset

    lies = {"begins": begins, "cuts": lambda heard: heard.number in lied}
    with LyingServer({"/d/file": content}, **lies) as server:
        report = copied(server, tmp_path / "near", streams=1)
    assert (tmp_path / "near").read_bytes() == content
    assert is_noted(report)


def test_an_offset_takes_no_round_trip_of_its_own(tmp_path: Path) -> None:
    """It goes out with the question for a port: this server answers that only when it has both."""
    with LyingServer({"/d/file": RANDOM}, waits_for_rest=True) as server:
        copied(server, tmp_path / "near", streams=1, timeout_s=20, retries=0)
    assert (tmp_path / "near").read_bytes() == RANDOM


@pytest.mark.parametrize("mode_e", [False, True])
def test_an_honest_server_is_asked_for_parts(tmp_path: Path, mode_e: bool) -> None:
    with LyingServer({"/d/file": SPARSE}, mode_e=mode_e) as server:
        report = copied(server, tmp_path / "near")
        parts = [line for line in server.commands if line.startswith("ERET" if mode_e else "REST")]
    assert (tmp_path / "near").read_bytes() == SPARSE
    assert not is_noted(report)
    assert len(parts) > 1


def test_small_files_take_one_command_each(tmp_path: Path) -> None:
    files = {f"/d/{i}": bytes([i]) * i * 1000 for i in range(1, 40)}
    with LyingServer(files, mode_e=True) as server:
        mpx.copy(f"{server.url}/d", str(tmp_path / "near"), mpx.CopyOptions(recursive=True, streams=1))
        asked = [line for line in server.commands if line.startswith(("ERET", "RETR"))]
    assert {f"/d/{path.name}": path.read_bytes() for path in (tmp_path / "near").iterdir()} == files
    assert len(asked) == len(files)


@pytest.mark.parametrize("checksums", ["none", "computed", "refused"])
def test_a_server_that_refuses_to_be_asked_beyond_the_end(tmp_path: Path, checksums: str) -> None:
    def refuses(line: str) -> str:
        words = line.split(" ")
        if words[0] == "CKSM" and checksums == "refused":
            return "500 not now"
        return "500 invalid offset" if words[0] == "ERET" and int(words[2]) + int(words[3]) > SIZE else ""

    files = {"/d/file": RANDOM}
    with LyingServer(files, mode_e=True, checksums=checksums != "none", refuses=refuses) as server:
        report = copied(server, tmp_path / "near")
    assert (tmp_path / "near").read_bytes() == RANDOM
    assert is_noted(report) == (checksums != "computed")  # what is compared by checksum is proven
    assert report.checksum["result"] == ("verified" if checksums == "computed" else "unverified")


def test_two_sessions_that_are_refused_at_once_are_asked_once_more_both(tmp_path: Path) -> None:
    both = threading.Barrier(2)
    asked: list[str] = []

    def refuses(line: str) -> str:
        words = line.split(" ")
        if words[0] != "ERET" or int(words[2]) + int(words[3]) <= SIZE:
            return ""
        asked.append(line)
        if len(asked) <= both.parties:
            both.wait(timeout=60)
        return "500 invalid offset"

    with LyingServer({"/d/file": RANDOM}, mode_e=True, checksums=True, refuses=refuses) as server:
        copied(server, tmp_path / "near", initial_streams=4)
    assert (tmp_path / "near").read_bytes() == RANDOM


@pytest.mark.parametrize("lie", ["ignored", "honoured once", "of few bits"])
def test_a_copy_that_is_continued_is_proven_too(tmp_path: Path, lie: str) -> None:
    honest = threading.Event()
    honest.set()
    begins = OFFSETS[lie]

    def now(heard: Heard, offset: int) -> int:
        return offset if honest.is_set() else begins(heard, offset)

    with LyingServer({"/d/file": SPARSE}, begins=now) as server:
        stop = threading.Event()
        with pytest.raises(mpx.Interrupted):
            mpx.copy(
                f"{server.url}/d/file",
                str(tmp_path / "near"),
                mpx.CopyOptions(rate_bps=400e6),
                on_progress=lambda progress: stop.set() if progress.bytes_done > 5_000_000 else None,
                cancel=stop,
            )
        honest.clear()
        report = copied(server, tmp_path / "near")
    assert (tmp_path / "near").read_bytes() == SPARSE
    assert report.files.total == 1


def test_refused_at_an_offset_although_it_is_offered(tmp_path: Path) -> None:
    def refuses(line: str) -> str:
        return "501 not here" if line.startswith("REST") else ""

    with LyingServer({"/d/file": RANDOM}, refuses=refuses) as server:
        report = copied(server, tmp_path / "near")
    assert (tmp_path / "near").read_bytes() == RANDOM
    assert is_noted(report)


def test_the_last_bytes_can_be_taken_first() -> None:
    todo = RangeSet([(0, 10), (20, 30)])
    assert todo.take_last(4) == (26, 30)
    assert todo.take_last(100) == (20, 26)
    assert list(todo) == [(0, 10)]
    assert RangeSet().take_last(1) is None
