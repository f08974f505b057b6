"""Names with the byte 0xFF, Telnet's escape, are the same at every server."""

import os
from pathlib import Path

import pytest
from interop.foreign_servers import ForeignServer, ProFtpd, PureFtpd

from mpx import CopyOptions, copy

NAMES = [b"caf\xff", b"\xff\xff", b"a\xff\xfbb", b"\xff\xf4\xff\xf2", b"\xff\xff\xff end", b"plain"]


@pytest.mark.peers
@pytest.mark.parametrize("kind", [ProFtpd, PureFtpd])
def test_up_and_down(kind: type[ForeignServer], tmp_path: Path, with_password: None) -> None:
    source = tmp_path / "tree"
    source.mkdir()
    for name in NAMES:
        (source / os.fsdecode(name)).write_bytes(name)
    (tmp_path / "ftp").mkdir()
    with kind(tmp_path / "ftp") as server:
        copy(str(source), server.url + "tree", CopyOptions(recursive=True))
        there = os.fsencode(server.root / "tree")
        assert sorted(os.listdir(there)) == sorted(NAMES)
        copy(server.url + "tree", str(tmp_path / "back"), CopyOptions(recursive=True))
        for name in NAMES:
            assert (tmp_path / "back" / os.fsdecode(name)).read_bytes() == name


@pytest.mark.peers
def test_at_vsftpd(vsftpd: tuple[str, Path], tmp_path: Path) -> None:
    url, folder = vsftpd
    source = tmp_path / "tree"
    source.mkdir()
    for name in NAMES:
        (source / os.fsdecode(name)).write_bytes(name)
    copy(str(source), f"{url}/tree", CopyOptions(recursive=True))
    assert sorted(os.listdir(os.fsencode(folder / "tree"))) == sorted(NAMES)
