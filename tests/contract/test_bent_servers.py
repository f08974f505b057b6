"""Whatever a server says, the result is the right bytes or an error, soon, and in little memory.

MPX_FOREIGN is how many servers are bent for each direction; `make foreign` tries thousands.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from contract.bent import SIZES, Case, cases, content, ended, folder_of, is_right
from hypothesis import event, given, note, settings

import mpx as api
from mpx import ftp_stream_lane, retry

EXAMPLES = int(os.environ.get("MPX_FOREIGN", "25"))
FILES = {"/d/one": b"111", "/d/two": content(3000), "/d/sub/three": b"", "/d/sub/four": content(70_000)}

several = settings(max_examples=EXAMPLES, derandomize="MPX_FOREIGN" not in os.environ, print_blob=True)


@pytest.fixture(autouse=True)
def in_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait less between attempts, and have parts of small files."""
    monkeypatch.setattr(retry, "FIRST_WAIT_S", 0.01)
    monkeypatch.setattr(ftp_stream_lane, "FIRST_PIECE", 256 * 1024)
    monkeypatch.setattr(ftp_stream_lane, "WORTH_CONNECTING", 256 * 1024)


@pytest.fixture
def folders() -> Iterator[Iterator[Path]]:
    """A new empty folder for each copy."""
    top = Path(tempfile.mkdtemp(prefix="mpx-bent-"))

    def each() -> Iterator[Path]:
        while True:
            yield Path(tempfile.mkdtemp(dir=top))

    yield each()
    shutil.rmtree(top)


def assert_known(case: Case, result: api.MpxError | api.Report) -> None:
    """An error says something; what nobody could verify is not called verified."""
    note(f"{result!r}")
    event(type(result).__name__)
    if isinstance(result, api.MpxError):
        assert str(result)
        assert "Traceback" not in str(result)
    elif not case.checksums:
        assert result.checksum["result"] != "verified"


@several
@given(case=cases("down"))
def test_a_download(folders: Iterator[Path], case: Case) -> None:
    folder, true = next(folders), content(case.size_bytes)
    with case.server({"/d/file": true}) as server:
        result = ended(f"{server.url}/d/file", str(folder / "file"), case.options)
    assert_known(case, result)
    got = folder_of(folder)
    assert got or isinstance(result, api.MpxError)
    assert set(got) <= {"file"}
    assert all(is_right(case, server, found, true) for found in got.values())


@several
@given(case=cases("tree"))
def test_a_tree(folders: Iterator[Path], case: Case) -> None:
    folder = next(folders)
    with case.server(FILES) as server:
        result = ended(f"{server.url}/d", str(folder / "d"), replace(case.options, recursive=True))
    assert_known(case, result)
    got = folder_of(folder)
    for name, found in got.items():
        assert is_right(case, server, found, FILES.get(f"/{name}", b"no such file")), name
    if isinstance(result, api.Report) and not case.bends_any("line", "listing"):
        assert {f"/{name}" for name in got} == set(FILES)


@several
@given(case=cases("up"))
def test_an_upload(folders: Iterator[Path], case: Case) -> None:
    folder, true, old = next(folders), content(case.size_bytes), b"the old file"
    (folder / "file").write_bytes(true)
    with case.server({"/d/file": old} if case.is_there else {"/d/other": b""}) as server:
        result = ended(str(folder / "file"), f"{server.url}/d/file", case.options)
    assert_known(case, result)
    stored = server.files.get("/d/file")
    if case.bends_any("stored") and case.bends_any(*SIZES):
        return  # nobody else knows what was stored
    assert stored in ((true,) if isinstance(result, api.Report) else (true, old, None))
