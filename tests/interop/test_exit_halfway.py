"""Exit codes 8, 130 and 143: a copy that had begun, and what it leaves."""

import json
import os
import shutil
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from interop.stock_server import StockServer
from mpx_command import copied, mpx, refused, running
from sites import Site, make, partials

pytestmark = pytest.mark.peers


# --- 8: what arrived ------------------------------------------------------------------------------


@contextmanager
def lying(server: StockServer) -> Iterator[str]:
    """The URL of a server behind a relay that spoils every checksum it reports."""

    def relay(source: socket.socket, target: socket.socket, *, spoil: bool) -> None:
        try:
            while data := source.recv(65536):
                if spoil:  # 213 answers CKSM here: eight hex digits and nothing else
                    data = b"".join(
                        b"213 0badbad0\r\n" if line.startswith(b"213 ") and len(line) == 14 else line
                        for line in data.splitlines(keepends=True)
                    )
                target.sendall(data)
        except OSError:
            pass
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                far = socket.create_connection(("127.0.0.1", server.port))
                for source, target, spoil in ((client, far, False), (far, client, True)):
                    threading.Thread(
                        target=relay, args=(source, target), kwargs={"spoil": spoil}, daemon=True
                    ).start()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"ftp://127.0.0.1:{listener.getsockname()[1]}{server.root}/"
        listener.shutdown(socket.SHUT_RDWR)
    thread.join()


def test_8_a_checksum_that_differs(tmp_path: Path, here: Path, file: Path) -> None:
    root = tmp_path / "served"
    root.mkdir()
    with StockServer(root) as server, lying(server) as url:
        refused(mpx("copy", "--report", here / "report", file, url), 8, "adler32")
        report = json.loads((here / "report").read_text())
        assert report["checksum"] == {"algorithm": "adler32", "result": "mismatch"}
        assert os.listdir(root) == []  # nothing under the final name, nothing worth keeping
        (root / "there").write_bytes(b"x" * 1000)
        refused(mpx("copy", url + "there", here / "down"), 8, "adler32")
        assert sorted(os.listdir(here)) == ["file", "report"]
        copied(mpx("copy", "--checksum", "none", file, url))


@pytest.mark.parametrize("change", ["grow", "shrink", "touch", "remove"])
def test_8_a_source_that_changes(
    stock: Site, here: Path, eventually: Callable[..., None], change: str
) -> None:
    source = make(here / "source", 2_000_000)
    with running("copy", "--rate", "8Mbit/s", source, stock.url_of("x")) as process:
        eventually(lambda: partials(stock.folder))
        if change == "grow":
            with source.open("ab") as out:
                out.write(b"more")
        elif change == "shrink":
            os.truncate(source, 1_000_000)
        elif change == "touch":
            os.utime(source, (1, 1))
        else:
            source.unlink()
        _, err = process.communicate(timeout=60)
    assert process.returncode == 8, err
    assert err.startswith(b"mpx: ")
    assert err.count(b"\n") == 1
    assert b"source" in err
    assert not (stock.folder / "x").exists()


# --- 130 and 143 ----------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["up", "down", "here"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_130_and_143_and_then_the_rest(
    stock: Site,
    here: Path,
    eventually: Callable[..., None],
    direction: str,
    number: signal.Signals,
    code: int,
) -> None:
    source, target, folder = str(make(here / "a", 6_000_000)), stock.url_of("x"), stock.folder
    if direction == "down":
        shutil.copy(source, stock.folder / "a")
        stock.hand_over()
        source, target, folder = stock.url_of("a"), str(here / "down/x"), here / "down"
    elif direction == "here":
        target, folder = str(here / "down/x"), here / "down"
    report = here / "report"
    with running("copy", "-q", "--rate", "8Mbit/s", "--report", report, source, target) as process:
        eventually(lambda: any(path.stat().st_blocks for path in partials(folder)))
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    assert out == b""
    assert err.startswith(b"mpx: interrupted")
    assert err.count(b"\n") == 1
    told = json.loads(report.read_text())
    assert (told["status"], told["exit_code"]) == ("interrupted", code)
    assert not (folder / "x").exists()
    ended = mpx("unfinished")
    copied(ended)
    assert source in ended.out
    assert "of 6000000 bytes in" in ended.out
    copied(mpx("copy", "--report", report, source, target))
    assert (folder / "x").read_bytes() == (here / "a").read_bytes()
    told = json.loads(report.read_text())
    assert told["files"]["resumed"] == 1
    assert told["bytes"]["resumed"] > 0
    assert mpx("unfinished").out == ""
    assert partials(folder) == []
