"""A server on loopback and a raw client of it, for the tests of `mpx serve`."""

from pathlib import Path

import pytest
from raw_client import CONTENT, RawClient

from mpx.serve import Server


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "file").write_bytes(CONTENT)
    return tmp_path / "served"


@pytest.fixture
def server(root: Path):
    with Server(root, writable=True) as server:
        yield server


@pytest.fixture
def client(server: Server):
    with RawClient(server.port) as client:
        yield client
