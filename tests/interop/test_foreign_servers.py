"""The FTP servers of others start, greet and serve, each as its fixture has it."""

import ftplib
import io

import pytest
from install_peers import find_peer
from interop.foreign_servers import ENVIRONMENT, ForeignServer


@pytest.mark.peers
def test_each_stores_and_returns_a_file(foreign: ForeignServer) -> None:
    with ftplib.FTP() as client:
        client.connect("127.0.0.1", foreign.port)
        client.login("u", ENVIRONMENT["MPX_PASSWORD"])
        client.storbinary("STOR a", io.BytesIO(b"abc"))
        got = io.BytesIO()
        client.retrbinary("RETR a", got.write)
    assert got.getvalue() == b"abc"
    assert (foreign.root / "a").read_bytes() == b"abc"


@pytest.mark.parametrize("program", ["proftpd", "pure-ftpd", "pure-pw", "vsftpd"])
def test_all_are_there_at_once(program: str) -> None:
    assert find_peer(program)
