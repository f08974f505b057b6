"""What real servers write for LIST: every name comes as it is, whatever its date, size and letters."""

import os
import stat
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from interop.control_relay import ControlRelay
from interop.foreign_servers import ProFtpd, PureFtpd, PyFtpdLib
from interop.trees import failures, names, readable
from interop.vsftpd import serving
from sites import AWKWARD, make, own_site, stock_site

import mpx as api
from mpx.engine.endpoint import FileInfo, Kind
from mpx.errors import MpxError
from mpx.location import parse_location
from mpx.options import CopyOptions
from mpx.transfer.registry import open_endpoint

pytestmark = pytest.mark.peers

DAY_S = 86_400
NOW_S = int(time.time())
NEW_YEAR_S = 1_767_225_600  # 2026-01-01, in UTC
DATED = {
    "last day of the year": NEW_YEAR_S - 1,
    "first day of the year": NEW_YEAR_S,
    "the year before": NEW_YEAR_S - 360 * DAY_S,
    "leap day": 1_709_164_800,  # 2024-02-29
    "half a year ago": NOW_S - 180 * DAY_S,
    "tomorrow": NOW_S + DAY_S,
    "in a year": NOW_S + 366 * DAY_S,
    "long ago": 86_400,
    "just now": NOW_S,
}
HIDDEN = [".hidden", "..two", "...", ". blank"]
LARGE_BYTES = 5 * 2**32 + 3


def without_mlsd(port: int) -> ControlRelay:
    """Stands before a server that has MLSD, which is not to be seen."""
    return ControlRelay(
        port,
        to_server=lambda line: line.replace(b"MLSD", b"XXXX").replace(b"MLST", b"XXXX"),
        to_client=lambda line: b" XXXX\r\n" if b"MLST" in line or b"MLSD" in line else line,
    )


@pytest.fixture(
    params=["vsftpd", "vsftpd local time", "vsftpd hides ids", "vsftpd names owners", "ProFTPD", "Pure-FTPD",
            "pyftpdlib", "mpx serve", "Globus"]
)  # fmt: skip
def listed(request: pytest.FixtureRequest, tmp_path: Path, with_password: None) -> Iterator[tuple[str, Path]]:
    """The URL of a folder of a server that lists by LIST, and the folder."""
    kind = request.param
    with ExitStack() as stack:
        if kind.startswith("vsftpd"):
            options = {
                "vsftpd local time": {"use_localtime": "YES"},
                "vsftpd hides ids": {"hide_ids": "YES"},
                "vsftpd names owners": {"text_userdb_names": "YES"},
            }
            yield stack.enter_context(serving(tmp_path, **options.get(kind, {})))
            return
        root = tmp_path / "ftp"
        root.mkdir()
        if kind in ("mpx serve", "Globus"):
            url = stack.enter_context((own_site if kind == "mpx serve" else stock_site)(root)).url
            user = ""
        else:
            server = {"ProFTPD": ProFtpd, "Pure-FTPD": PureFtpd, "pyftpdlib": PyFtpdLib}[kind](root)
            url, user = stack.enter_context(server).url, "u@"
        location = parse_location(url)
        relay = stack.enter_context(without_mlsd(location.port))
        yield f"ftp://{user}127.0.0.1:{relay.port}{location.name}".rstrip("/"), root


def entries(url: str) -> dict[str, FileInfo | MpxError]:
    location = parse_location(url)
    end = open_endpoint(location, CopyOptions(), lambda: False, writing=False)
    try:
        found = list(end.entries(location.name))
        assert end.listing_note()
    finally:
        end.close()
    assert len({name for name, _ in found}) == len(found)
    return dict(found)


def test_every_name_is_listed_as_it_is(listed: tuple[str, Path]) -> None:
    url, folder = listed
    files = {name: len(name) for name in (*AWKWARD, *HIDDEN, *DATED)}
    for name, size in files.items():
        make(folder / name, size)
    for name, modified_s in DATED.items():
        os.utime(folder / name, (modified_s, modified_s))
    with (folder / "large").open("wb") as large:
        large.truncate(LARGE_BYTES)
    files["large"] = LARGE_BYTES
    for name in (" folder", ".folder", "Jan  1  2024", "1 u g 5 Jan 01 12:00 x"):
        (folder / name).mkdir()
    readable(folder)
    found = entries(url)
    assert found.keys() == set(os.listdir(folder))
    for name, info in found.items():
        there = (folder / name).stat()
        assert isinstance(info, FileInfo), (name, info)
        if stat.S_ISDIR(there.st_mode):
            assert info.kind is Kind.FOLDER, name
        else:
            assert (info.kind, info.size_bytes) == (Kind.FILE, files[name]), name
            if name != "~":  # `/~` is the login folder, whose time a server tells
                assert info.modified_s in (None, int(there.st_mtime)), name


def test_folders_that_may_not_be_listed_have_failed(
    request: pytest.FixtureRequest, listed: tuple[str, Path], tmp_path: Path
) -> None:
    if any(f"[{kind}]" in request.node.name for kind in ("mpx serve", "pyftpdlib")) or os.geteuid() != 0:
        pytest.skip("the server works as we do, and may list all")
    url, folder = listed
    for name in ("a/file", "closed/file", "unlisted/file", "z/file"):
        make(folder / "d" / name, 10)
    (folder / "d/empty").mkdir()
    readable(folder)
    (folder / "d/closed").chmod(0)
    (folder / "d/unlisted").chmod(0o711)
    with pytest.raises(api.PartialFailure) as caught:
        api.copy(f"{url}/d", str(tmp_path / "down"), CopyOptions(recursive=True, retries=1))
    assert failures(caught).keys() == {"closed", "unlisted"}
    assert (tmp_path / "down/z/file").read_bytes() == (folder / "d/z/file").read_bytes()
    assert (tmp_path / "down/empty").is_dir()


def test_a_tree_is_copied_whole_and_not_again(listed: tuple[str, Path], tmp_path: Path) -> None:
    url, folder = listed
    for name in (*AWKWARD, *HIDDEN):
        if name != "back\\slash":  # which Pure-FTPD lists and sends nobody
            make(folder / "d" / name, 30)
    make(folder / "d/.deep/ er/.file", 50)
    (folder / "d/empty").mkdir()
    readable(folder)
    report = api.copy(f"{url}/d", str(tmp_path / "down"), CopyOptions(recursive=True))
    assert names(tmp_path / "down") == names(folder / "d")
    for name in names(folder / "d"):
        if not name.endswith("/"):
            assert (tmp_path / "down" / name).read_bytes() == (folder / "d" / name).read_bytes(), name
    assert report.files.failed == 0
    again = api.copy(f"{url}/d", str(tmp_path / "down"), CopyOptions(recursive=True))
    assert again.files.moved == 0
