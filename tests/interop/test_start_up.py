"""What a command imports: a copy of one small file lasts little longer than that, so no more than needed."""

import importlib.util
import os
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from interop.stock_server import StockServer

from mpx.endpoints.ftp.extensions.stdio import CONTROL, LaneRequest, ServeRequest, encode_request
from mpx.net.self_signed import self_signed

SLOW = {  # to import, and needed for special cases at most
    *(
        "numpy",
        "sklearn",
        "matplotlib",
        "ssl",
        "http",
        "email",
        "asyncio",
        "logging",
        "sqlite3",
        "statistics",
        "botocore",
    ),
    *("concurrent.futures", "fractions", "decimal", "tempfile", "lzma", "_strptime", "stringprep"),
}
SPECIAL = {  # each for copies that ask for it, or that last
    *(
        "mpx.serve",
        "mpx.sdn_client",
        "mpx.multipath.paths_in_use",
        "mpx.probing",
        "mpx.recognition.watch",
        "mpx.recognition.pulses.maker",
    ),
    *(
        "mpx.recognition.scavenger",
        "mpx.recognition.monitor",
        "mpx.recognition.model",
        "mpx.recognition.switching",
        "mpx.apt_gss",
        "mpx.endpoints.ftp.two_servers.carrier",
    ),
    *("mpx.endpoints.ftp.folder_listing", "mpx.endpoints.ftp.describe", "mpx.endpoints.ftp.mode_s.worker"),
}
UPLOADS = {"mpx.endpoints.ftp.mode_e.upload_worker", "mpx.endpoints.ftp.mode_e.upload_stream"}
DOWNLOADS = {
    "mpx.endpoints.ftp.mode_e.download_worker",
    "mpx.endpoints.ftp.mode_e.download_session",
    "mpx.engine.range_scheduler",
}
LOCAL = {"mpx.endpoints.local.carrier"}
OF_SERVERS = {"mpx.endpoints.ftp.mode_e.carriers", *UPLOADS, *DOWNLOADS}
COPYING = {
    "mpx.transfer.copy",
    "mpx.report",
    "mpx.endpoints.local.endpoint",
    "mpx.transfer.journal",
    "mpx.gridftp",
    "mpx.transfer.registry",
}
_IMPORTED = re.compile(r"import time: +[0-9]+ \| +[0-9]+ \| +([\w.]+)")


def imported(*words: object, state: Path) -> set[str]:
    found = started(*words, state=state)
    assert "mpx.cli" in found
    return found


def started(*words: object, state: Path, said: bytes = b"", code: int = 0) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "mpx", *map(str, words)],
        env={**os.environ, "MPX_STATE_DIR": str(state)},
        input=said,
        capture_output=True,
        check=False,
    )
    told = done.stderr.decode("utf-8", "replace")
    assert done.returncode == code, told
    return set(_IMPORTED.findall(told))


def test_what_is_not_to_be_imported_is_there() -> None:
    for name in SPECIAL | OF_SERVERS | LOCAL | COPYING:
        assert importlib.util.find_spec(name), f"{name} has another name by now: change it here too"


def test_showing_the_help_or_the_version(tmp_path: Path) -> None:
    slow = SLOW - {"lzma"}  # click's help comes with it
    for words in (["--version"], ["--help"], ["copy", "--help"]):
        found = imported(*words, state=tmp_path)
        assert not found & (slow | SPECIAL | OF_SERVERS | LOCAL | COPYING)


@pytest.mark.peers
def test_a_copy_of_one_file(tmp_path: Path) -> None:
    root, state = tmp_path / "served", tmp_path / "state"
    root.mkdir()
    source = tmp_path / "source"
    source.write_bytes(b"x" * 1000)
    with StockServer(root) as server:
        up = imported("copy", source, f"{server.url}far", state=state)
        down = imported("copy", f"{server.url}far", tmp_path / "near", state=state)
    here = imported("copy", source, tmp_path / "here", state=state)
    assert (tmp_path / "near").read_bytes() == (tmp_path / "here").read_bytes() == source.read_bytes()
    assert up >= COPYING | UPLOADS and down >= COPYING | DOWNLOADS and here >= LOCAL
    assert not up & (SLOW | SPECIAL | DOWNLOADS | LOCAL)
    assert not down & (SLOW | SPECIAL | UPLOADS | LOCAL)
    assert not here & (SLOW | SPECIAL | OF_SERVERS)


def test_the_other_end_of_an_ssh(tmp_path: Path) -> None:
    """Whoever copies waits for it, and for each lane."""
    certificate, key = self_signed("a test", timedelta(days=1))
    asked = encode_request(ServeRequest((certificate + key).decode("ascii"), "secret"))
    server = started("serve", "--stdio", state=tmp_path, said=asked)
    assert "mpx.serve.server" in server
    assert not server & (SLOW - {"ssl", "logging"} | COPYING | {"click", "calendar", "mpx.cli"})
    gone = encode_request(LaneRequest(str(tmp_path / "gone"), CONTROL))
    lane = started("serve", "--stdio", state=tmp_path, said=gone, code=2)
    assert "mpx.serve.stdio" in lane
    assert not lane & (SLOW | COPYING | {"click", "mpx.cli", "mpx.serve.stdio_server"})
