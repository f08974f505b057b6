"""A copy from or to a bent server, and what is asserted of it (see bent.py for what cannot be)."""

import threading
from dataclasses import replace
from pathlib import Path

from contract.bent import SIZES, Case, content
from interop.bent_server import BentServer

import mpx as api
from mpx.endpoints.ftp.facts import parse_time
from mpx.files.partial_names import partial_name
from mpx.location import parse_location
from mpx.transfer.journal import Journal
from mpx.transfer.journal_reader import Unfinished
from mpx.transfer.registry import open_endpoint

Outcome = api.MpxError | api.Report
HANGS_S = 100.0  # what takes longer than that has no end
FILES = {"/d/one": b"111", "/d/two": content(3000), "/d/sub/three": b"", "/d/sub/four": content(70_000)}
OLD = b"the old file"


def ended(source: str, destination: str, options: api.CopyOptions) -> Outcome:
    """Copy, and return the report or the error. Fails when it hangs; raises what is no error of mpx."""
    stop = threading.Event()
    watch = threading.Timer(HANGS_S, stop.set)
    watch.start()
    try:
        return api.copy(source, destination, options, cancel=stop)
    except api.MpxError as error:
        assert not stop.is_set(), f"no end after {HANGS_S:g} s"
        return error
    finally:
        watch.cancel()


def listed(url: str, options: api.CopyOptions) -> dict[str, int | None] | api.MpxError:
    """Return the sizes of what is in a folder, by name, as `mpx list` asks for them; or the error."""
    location = parse_location(url)
    endpoint = open_endpoint(location, options, lambda: False, writing=False)
    found: dict[str, int | None] = {}
    try:
        if endpoint.stat(location.name) is None:
            return api.SourceError(f"{url} does not exist")
        for name, info in endpoint.entries(location.name):
            if isinstance(info, api.MpxError):
                return info
            found[name] = info.size_bytes
    except api.MpxError as error:
        return error
    finally:
        endpoint.close()
    return found


def is_right(case: Case, server: BentServer, got: bytes, true: bytes) -> bool:
    """Tell whether this is what the server has, or what it says that it has whenever it is asked."""
    if got == true:
        return True
    if got not in server.claims or (len(got) < len(true) and not case.bends_any(*SIZES)):
        return False
    return not case.checksums or case.bends_any(*SIZES)


def folder_of(path: Path) -> dict[str, bytes]:
    """Return the files below a folder that have their final names, by name."""
    return {
        str(each.relative_to(path)): each.read_bytes()
        for each in path.rglob("*")
        if each.is_file() and not each.name.endswith(".part")
    }


def _left(
    case: Case, source: str, destination: str, final: str, modified_s: float | None
) -> tuple[str, bytes | None]:
    """Write the journal of a run that was killed; return the name of the partial file, and what it has."""
    assert case.left
    names = [str(parse_location(each).absolute()) for each in (source, destination)]
    journal = Journal(*names)
    partial = partial_name(final, journal.tag)
    journal.begin(Unfinished(final, partial, case.size_bytes, modified_s))
    journal.arrived(final, list(case.left.arrived))
    journal.close()
    return partial, case.left.partial(content(case.size_bytes))


def _assert_known(case: Case, result: Outcome) -> None:
    """An error says something; what nobody could verify is not called verified."""
    if isinstance(result, api.MpxError):
        assert str(result)
        assert "Traceback" not in str(result)
        assert type(result) is not api.MpxError, result  # that would be what nobody has thought of
        # One would end it before it begins; but a server that is out of step may say that it is a folder.
        refused = isinstance(result, api.UsageError) and "is a folder" not in str(result)
        assert case.demands or not refused, result
    elif not case.checksums:
        assert result.checksum["result"] != "verified"


def check_download(folder: Path, case: Case) -> Outcome:
    true = content(case.size_bytes)
    with case.server({"/d/file": true}) as server:
        source, destination = f"{server.url}/d/file", str(folder / "file")
        if case.left:
            modified_s = parse_time(server.modified)
            partial, kept = _left(case, source, destination, destination, modified_s)
            if kept is not None:
                Path(partial).write_bytes(kept)
        result = ended(source, destination, case.options)
    _assert_known(case, result)
    got = folder_of(folder)
    assert got or isinstance(result, api.MpxError)
    assert set(got) <= {"file"}
    assert all(is_right(case, server, found, true) for found in got.values()), result
    return result


def check_tree(folder: Path, case: Case) -> Outcome:
    with case.server(FILES) as server:
        result = ended(f"{server.url}/d", str(folder / "d"), replace(case.options, recursive=True))
    _assert_known(case, result)
    got = folder_of(folder)
    for name, found in got.items():
        assert is_right(case, server, found, FILES.get(f"/{name}", b"no such file")), (name, result)
    if isinstance(result, api.Report) and not case.bends_any("line", "listing"):
        assert {f"/{name}" for name in got} == set(FILES), result
    return result


def check_upload(folder: Path, case: Case) -> Outcome:
    true, file = content(case.size_bytes), folder / "file"
    file.write_bytes(true)
    with case.server({"/d/file": OLD} if case.is_there else {"/d/other": b""}) as server:
        if case.left:
            url, modified_s = f"{server.url}/d/file", file.stat().st_mtime
            partial, kept = _left(case, str(file), url, "/d/file", modified_s)
            if kept is not None:
                server.files[partial] = kept
        result = ended(str(file), f"{server.url}/d/file", case.options)
    _assert_known(case, result)
    stored = server.files.get("/d/file")
    if _is_up_to_the_server(case):
        return result
    assert stored in ((true,) if isinstance(result, api.Report) else (true, OLD, None)), result
    return result


def _is_up_to_the_server(case: Case) -> bool:
    """Tell whether nobody but the server knows what was stored, and it may say anything of that."""
    if case.bends_any("stored", "arrival") and case.bends_any(*SIZES):
        return True
    believes = case.bends_any("marker") or (case.left is not None and case.bends_any(*SIZES))
    return believes and not case.checksums


def check_tree_up(folder: Path, case: Case) -> Outcome:
    for name, true in FILES.items():
        file = folder / name.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(true)
    with case.server({"/other": b""}) as server:
        result = ended(str(folder / "d"), f"{server.url}/d", replace(case.options, recursive=True))
    _assert_known(case, result)
    if _is_up_to_the_server(case):
        return result
    stored = {name: each for name, each in server.files.items() if not name.endswith(".part")}
    assert stored.items() <= {**FILES, "/other": b""}.items(), result
    if isinstance(result, api.Report):
        assert set(FILES) <= set(stored), result
    return result


def check_list(case: Case) -> object:
    with case.server(FILES) as server:
        result = listed(f"{server.url}/d", case.options)
    if isinstance(result, dict) and not case.bends_any("line", "listing"):
        assert set(result) == {"one", "two", "sub"}
    if isinstance(result, dict) and not case.bends_any("line", "listing", *SIZES):
        assert {name: size for name, size in result.items() if name != "sub"} == {"one": 3, "two": 3000}
    return result
