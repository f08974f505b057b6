"""A server on loopback and a raw client of it, for the tests of `mpx serve`."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from raw_client import CONTENT, RawClient
from secure_client import secure_server

from mpx.serve import Server
from mpx.serve.token_serving import TokenServing


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


@pytest.fixture
def serving(root: Path, tmp_path: Path) -> Iterator[tuple[Server, TokenServing]]:
    """One inside TLS."""
    with secure_server(root, audit=tmp_path / "audit") as made:
        yield made
