"""Copies with a server whose data has another address than its commands, which no path set leads to."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from interop.control_relay import ControlRelay
from pretended import Book, kept
from random_bytes import random_bytes

from mpx import CopyOptions, copy
from mpx.errors import ControllerError
from mpx.serve import Server

ELSEWHERE, DATA = "127.0.0.5", "127.0.0.1"
SIZE = 5_000_000


@contextmanager
def served(folder: Path) -> Iterator[str]:
    folder.mkdir()
    with (
        Server(folder, host=DATA, writable=True) as server,
        ControlRelay(server.port, host=ELSEWHERE) as relay,
    ):
        yield f"ftp://{ELSEWHERE}:{relay.port}/"


@pytest.mark.parametrize("upload", [True, False], ids=["up", "down"])
def test_it_is_said_with_both_addresses_and_refused_where_paths_are_required(
    tmp_path: Path, upload: bool
) -> None:
    book, content = Book(), random_bytes(SIZE)
    with served(tmp_path / "served") as url, kept(book) as controller:
        (tmp_path / "served/far").write_bytes(content)
        (tmp_path / "near").write_bytes(content)
        names = (str(tmp_path / "near"), f"{url}new") if upload else (f"{url}far", str(tmp_path / "new"))
        elsewhere = CopyOptions(controller=controller, data_address_from_server=True)
        report = copy(*names, elsewhere)
        arrived = tmp_path / ("served/new" if upload else "new")
        assert arrived.read_bytes() == content
        assert sorted(book.pairs[1]) == [DATA, ELSEWHERE]
        (note,) = [each for each in report.notes if "one path is used" in each]
        assert f"data at {DATA}" in note and f"leads to {ELSEWHERE}" in note
        assert not any("carried_bytes" in path for path in report.decisions["paths"])
        assert not book.feedback
        arrived.unlink()
        with pytest.raises(ControllerError, match=f"data at {DATA}.*leads to {ELSEWHERE}"):
            copy(*names, replace(elsewhere, require_controller=True))
        assert not arrived.exists()
