"""Folders that a server may list and not enter, or enter and not list: nothing is left out in silence."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from interop.foreign_servers import ForeignServer, ProFtpd, PureFtpd
from interop.stock_server import StockServer
from interop.vsftpd import VsFtpd
from mpx_command import mpx
from sites import make

pytestmark = pytest.mark.peers

Serves = Callable[[Path], AbstractContextManager[ForeignServer | StockServer]]


@pytest.mark.parametrize("mode", [0o444, 0o111, 0o000])
@pytest.mark.parametrize("serves", [VsFtpd, ProFtpd, PureFtpd, StockServer])
def test_a_folder_that_is_closed_to_the_server_has_failed(
    serves: Serves, mode: int, tmp_path: Path, with_password: None
) -> None:
    if os.geteuid() != 0:
        pytest.skip("whoever serves owns all that is served, unless root has started it")
    root = tmp_path / "ftp"
    for name in ("d/closed/inner", "d/open"):
        make(root / name, 10).chmod(0o644)
    (root / "d/empty").mkdir()
    (root / "d/closed").chmod(mode)
    with serves(root) as server:
        ended = mpx("copy", "-r", f"{server.url}d", tmp_path / "down")
    assert ended.code == 10, ended
    assert "closed" in ended.err
    assert (tmp_path / "down/open").read_bytes() == (root / "d/open").read_bytes()
    assert (tmp_path / "down/empty").is_dir()
    assert not any((tmp_path / "down/closed").iterdir())
