"""What a server says of sizes, and what comes: the end of the data decides, and what disagrees is told."""

import os
import random
from contextlib import nullcontext
from pathlib import Path

import pytest
from interop.control_relay import ControlRelay
from interop.foreign_servers import ForeignServer
from interop.lying_server import LyingServer
from interop.stock_server import StockServer

import mpx
from mpx.engine.source_change import END_DECIDES
from mpx.serve import Server

SMALL = random.Random(1).randbytes(30_000)
LARGE = random.Random(2).randbytes(9 * 1024 * 1024 + 5)
UNUSABLE = ["", "size=;", "size=12KB;", "size=-5;", "size=0;", "size=٣;", f"size={'9' * 400};", "size=+7;"]
WRONG = ["size=6;", "size=29999;", "size=30001;", "size=900000000;"]


def facts_with(size: str) -> object:
    return lambda _: f"type=file;{size}modify=20240101000000;"


def copied(server: LyingServer, tmp_path: Path, *, in_tree: bool) -> tuple[bytes, mpx.Report]:
    if in_tree:
        report = mpx.copy(f"{server.url}/d", str(tmp_path / "tree"), mpx.CopyOptions(recursive=True))
        assert os.listdir(tmp_path / "tree") == ["file"]
        return (tmp_path / "tree" / "file").read_bytes(), report
    report = mpx.copy(f"{server.url}/d/file", str(tmp_path / "file"))
    return (tmp_path / "file").read_bytes(), report


@pytest.mark.parametrize("answers", [True, False], ids=["SIZE", "no SIZE"])
@pytest.mark.parametrize("in_tree", [False, True], ids=["file", "tree"])
@pytest.mark.parametrize("mode_e", [False, True], ids=["S", "E"])
@pytest.mark.parametrize("content", [SMALL, LARGE, b""], ids=["small", "large", "empty"])
@pytest.mark.parametrize("size", UNUSABLE)
def test_a_size_that_cannot_be_read(
    tmp_path: Path, size: str, content: bytes, mode_e: bool, in_tree: bool, answers: bool
) -> None:
    lies = {} if answers else {"size": lambda _: "502 no SIZE here"}
    with LyingServer({"/d/file": content}, mode_e=mode_e, facts=facts_with(size), **lies) as server:
        got, report = copied(server, tmp_path, in_tree=in_tree)
    assert got == content
    assert report.checksum["result"] == "unverified"
    assert report.bytes.total == report.bytes.moved == len(content)


@pytest.mark.parametrize("answers", [True, False], ids=["SIZE", "no SIZE"])
@pytest.mark.parametrize("mode_e", [False, True], ids=["S", "E"])
@pytest.mark.parametrize("content", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("size", WRONG)
def test_a_wrong_size(tmp_path: Path, size: str, content: bytes, mode_e: bool, answers: bool) -> None:
    lies = {} if answers else {"size": lambda _: "502 no SIZE here"}
    with LyingServer({"/d/file": content}, mode_e=mode_e, facts=facts_with(size), **lies) as server:
        told = int(size[5:-1])
        if not answers and told > len(content):  # it may as well have been cut short
            with pytest.raises(mpx.IntegrityError, match="bytes"):
                copied(server, tmp_path, in_tree=False)
            assert not (tmp_path / "file").exists()
            return
        got, report = copied(server, tmp_path, in_tree=False)
    assert got == content
    assert any(note.endswith(END_DECIDES) for note in report.notes)


@pytest.mark.parametrize("mode_e", [False, True], ids=["S", "E"])
@pytest.mark.parametrize("size", WRONG)
def test_a_wrong_size_in_a_listing(tmp_path: Path, size: str, mode_e: bool) -> None:
    with LyingServer({"/d/file": SMALL}, mode_e=mode_e, facts=facts_with(size)) as server:
        got, report = copied(server, tmp_path, in_tree=True)
    assert got == SMALL
    assert any(note.endswith(END_DECIDES) for note in report.notes)


@pytest.mark.parametrize("mode_e", [False, True], ids=["S", "E"])
@pytest.mark.parametrize("told", [0, 6, 20_000])
def test_what_was_streamed_is_verified_where_the_server_can(tmp_path: Path, told: int, mode_e: bool) -> None:
    lies = {"facts": facts_with(f"size={told};"), "size": lambda _: f"213 {told}"}
    with LyingServer({"/d/file": SMALL}, mode_e=mode_e, checksums=True, **lies) as server:
        got, report = copied(server, tmp_path, in_tree=False)
        summed = [line for line in server.commands if line.startswith("CKSM")]
    assert got == SMALL
    wanted = {"algorithm": "adler32", "result": "verified", "bytes": {"adler32": len(SMALL)}}
    assert report.checksum == wanted
    assert summed == [f"CKSM ADLER32 0 {len(SMALL)} /d/file"]


@pytest.mark.parametrize("mode_e", [False, True], ids=["S", "E"])
def test_damage_in_what_was_streamed_is_found(tmp_path: Path, mode_e: bool) -> None:
    sent = iter(range(100))

    def sends(_: str) -> bytes:
        return SMALL if next(sent) else SMALL[:-1] + b"x"  # what is summed later is another

    lies = {"facts": facts_with(""), "size": lambda _: "502 no"}
    with LyingServer({"/d/file": SMALL}, mode_e=mode_e, checksums=True, sends=sends, **lies) as server:
        got, report = copied(server, tmp_path, in_tree=False)
    assert got == SMALL
    assert any("damaged" in note for note in report.notes)


def test_a_file_that_is_listed_empty_and_grows_is_no_empty_file(tmp_path: Path) -> None:
    times = iter(["20240101000000", *["20240101000001"] * 100])
    lies = {
        "facts": lambda _: f"type=file;size=0;modify={next(times)};",
        "size": lambda _: f"213 {len(SMALL)}",
    }
    with (
        LyingServer({"/d/file": b""}, **lies) as server,
        pytest.raises(mpx.IntegrityError, match="changed"),
    ):
        copied(server, tmp_path, in_tree=False)


def test_a_file_that_seems_longer_and_then_ends_early(tmp_path: Path) -> None:
    """It is read to its end once more came than was announced, and the end came too early then."""
    sent = iter([SMALL + b"more"])
    with (
        LyingServer({"/d/file": SMALL}, mode_e=True, sends=lambda _: next(sent, SMALL[:100])) as server,
        pytest.raises(mpx.IntegrityError, match="ended after 100 bytes"),
    ):
        copied(server, tmp_path, in_tree=False)
    assert not (tmp_path / "file").exists()


PROC = Path("/proc/sys/kernel")  # its files say that they have no bytes


@pytest.mark.parametrize("options", [{}, {"checksum": "none"}], ids=["checksums", "none"])
def test_a_file_of_proc_at_mpx_serve(tmp_path: Path, options: dict[str, str]) -> None:
    with Server(PROC) as server:
        report = mpx.copy(f"{server.url}osrelease", str(tmp_path / "got"), mpx.CopyOptions(**options))
    assert (tmp_path / "got").read_bytes() == (PROC / "osrelease").read_bytes()
    assert report.checksum["result"] == ("unverified" if options else "verified")


@pytest.mark.peers
@pytest.mark.parametrize("blocked", [False, True], ids=["E", "S"])
def test_a_file_of_proc_at_a_stock_server(tmp_path: Path, blocked: bool) -> None:
    (tmp_path / "served").mkdir()
    with StockServer(tmp_path / "served") as stock:

        def without(line: bytes) -> bytes:
            return b"MODE X\r\n" if line.startswith(b"MODE E") else line  # which is refused

        with ControlRelay(stock.port, to_server=without) if blocked else nullcontext(stock) as server:
            mpx.copy(f"ftp://127.0.0.1:{server.port}{PROC}/osrelease", str(tmp_path / "got"))
    assert (tmp_path / "got").read_bytes() == (PROC / "osrelease").read_bytes()


@pytest.mark.peers
def test_a_link_by_its_name_is_the_file_that_it_leads_to(foreign: ForeignServer, tmp_path: Path) -> None:
    (foreign.root / "real").write_bytes(LARGE)
    (foreign.root / "real").chmod(0o644)
    (foreign.root / "link").symlink_to("real")
    report = mpx.copy(f"{foreign.url}link", str(tmp_path / "got"))
    assert (tmp_path / "got").read_bytes() == LARGE
    assert not (tmp_path / "got").stat().st_mode & 0o022  # that of a link allows everything
    assert report.bytes.moved == len(LARGE)


def test_sizes_that_a_listing_does_not_tell_are_asked_for(tmp_path: Path) -> None:
    files = {f"/d/{i}": bytes([i]) * (i + 1) for i in range(20)}
    with LyingServer(files, facts=facts_with("")) as server:
        mpx.copy(f"{server.url}/d", str(tmp_path / "got"), mpx.CopyOptions(recursive=True))
        assert {f"SIZE {name}" for name in files} <= set(server.commands)
        again = mpx.copy(f"{server.url}/d", str(tmp_path / "got"), mpx.CopyOptions(recursive=True))
    assert {f"/d/{path.name}": path.read_bytes() for path in (tmp_path / "got").iterdir()} == files
    assert again.files.skipped == 20  # a size that is known can be compared
