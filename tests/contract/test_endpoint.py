"""What every endpoint must do, whatever it talks to: one suite, run against each of tests/sites.py."""

import hashlib
import os
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from sites import AWKWARD, SITES, Site, opened

from mpx.endpoint import Commit, Endpoint, Kind, Part, Stamp
from mpx.errors import DestinationError, MpxError, SourceError, UsageError

MODIFIED_S = 1_234_567_890


THAT_MAKE_LINKS = ("local", "stock server")


@pytest.fixture(params=SITES)
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    with opened(request.param, tmp_path) as site:
        yield site


@pytest.fixture
def end(site: Site) -> Endpoint:
    return site.open(writing=True)


@pytest.fixture(params=THAT_MAKE_LINKS)
def links(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    with opened(request.param, tmp_path) as site:
        yield site


def untold(line: str) -> None:
    """Take a note where there is none to be made."""
    pytest.fail(f"told: {line}")


# --- describing ------------------------------------------------------------------------------------


def test_stat_of_a_file(site: Site, end: Endpoint) -> None:
    path = site.write("a", b"12345")
    path.chmod(0o640)
    os.utime(path, (0, MODIFIED_S))
    info = end.stat(site.name("a"))
    assert info is not None
    assert (info.kind, info.size_bytes, info.modified_s, info.mode) == (Kind.FILE, 5, MODIFIED_S, 0o640)


def test_stat_of_a_folder_with_and_without_a_slash(site: Site, end: Endpoint) -> None:
    (site.folder / "sub").mkdir()
    for name in ("sub", "sub/", ""):
        info = end.stat(site.name(name))
        assert info is not None, name
        assert info.kind is Kind.FOLDER


def test_stat_of_what_is_not_there(site: Site, end: Endpoint) -> None:
    site.write("file")
    assert end.stat(site.name("missing")) is None
    assert end.stat(site.name("missing/too")) is None
    assert end.stat(site.name("file/below")) is None


def test_stat_of_links(site: Site, end: Endpoint) -> None:
    site.write("sub/file", b"123")
    (site.folder / "relative").symlink_to("sub/file")
    (site.folder / "folder link").symlink_to("sub")
    (site.folder / "chain").symlink_to("relative")
    (site.folder / "sub/up").symlink_to("../sub/file")
    (site.folder / "dangling").symlink_to("nowhere")
    for name in ("relative", "chain", "sub/up", "folder link/file", "folder link/up"):
        info = end.stat(site.name(name))
        assert info is not None, name
        assert (info.kind, info.size_bytes) == (Kind.FILE, 3), name
    assert end.stat(site.name("dangling")) is None
    folder = end.stat(site.name("folder link"))
    assert folder is not None
    assert folder.kind is Kind.FOLDER


def test_stat_without_following(site: Site, end: Endpoint) -> None:
    target = "some where; with=signs %41"
    site.write(target)
    (site.folder / "link").symlink_to(target)
    info = end.stat(site.name("link"), follow=False)
    assert info is not None
    assert info.kind is Kind.LINK
    assert info.link_target == (str(site.folder / target) if site.resolves_links else target)
    assert info.link_resolved == site.resolves_links


def test_stat_of_a_loop_of_links(site: Site, end: Endpoint) -> None:
    (site.folder / "a").symlink_to("b")
    (site.folder / "b").symlink_to("a")
    (site.folder / "self").symlink_to("self")
    assert end.stat(site.name("a")) is None
    assert end.stat(site.name("self/below")) is None
    assert end.stats([site.name("self")]) == [None]


def test_stat_of_a_fifo(site: Site, end: Endpoint) -> None:
    os.mkfifo(site.folder / "fifo")
    info = end.stat(site.name("fifo"))
    assert info is not None
    assert info.kind is Kind.OTHER


def test_stats_answers_in_order(site: Site, end: Endpoint) -> None:
    site.write("a", b"1")
    site.write("c", b"333")
    (site.folder / "link").symlink_to("c")
    names = [site.name(name) for name in ("c", "missing", "a", "link", "missing too")]
    found = end.stats(names)
    assert [info.size_bytes if info and not isinstance(info, MpxError) else None for info in found] == [
        3,
        None,
        1,
        3,
        None,
    ]
    assert list(end.stats([])) == []


def test_stats_of_very_many(site: Site, end: Endpoint) -> None:
    names = [f"f{i}" for i in range(1500)]
    for i, name in enumerate(names):
        if i % 2:
            site.write(name, b"x")
    found = end.stats([site.name(name) for name in names])
    assert [info is not None for info in found] == [bool(i % 2) for i in range(1500)]


def test_a_name_that_cannot_be_described_is_an_error_of_its_own(site: Site, end: Endpoint) -> None:
    site.write("a", b"1")
    found = end.stats([site.name("x" * 300), site.name("a")])
    assert isinstance(found[0], DestinationError)
    assert found[1] is not None
    assert not isinstance(found[1], MpxError)


def test_entries(site: Site, end: Endpoint) -> None:
    site.write("sub/file", b"12")
    (site.folder / "sub/folder").mkdir()
    (site.folder / "sub/link").symlink_to("file")
    (site.folder / "sub/dangling").symlink_to("nowhere")
    os.mkfifo(site.folder / "sub/fifo")
    (site.folder / "sub/.hidden").write_bytes(b"")
    found = dict(end.entries(site.name("sub")))
    assert {name: info.kind for name, info in found.items()} == {
        "file": Kind.FILE,
        "folder": Kind.FOLDER,
        "link": Kind.LINK,
        "dangling": Kind.LINK,
        "fifo": Kind.OTHER,
        ".hidden": Kind.FILE,
    }
    assert found["file"].size_bytes == 2
    assert found["file"].modified_s is not None
    assert abs(found["file"].modified_s - time.time()) < 3600
    link = str(site.folder / "sub/file") if site.resolves_links else "file"
    assert (found["link"].link_target, found["dangling"].link_target) == (link, "nowhere")


def test_entries_of_an_empty_folder(site: Site, end: Endpoint) -> None:
    (site.folder / "empty").mkdir()
    assert list(end.entries(site.name("empty"))) == []


def test_entries_with_awkward_names(site: Site, end: Endpoint) -> None:
    for name in AWKWARD:
        site.write(f"sub/{name}", name.encode())
    assert {name: info.size_bytes for name, info in end.entries(site.name("sub"))} == {
        name: len(name) for name in AWKWARD
    }


def test_entries_of_many(site: Site, end: Endpoint) -> None:
    for i in range(3000):
        site.write(f"sub/{i:05}")
    assert sum(1 for _ in end.entries(site.name("sub"))) == 3000


def test_entries_left_in_the_middle(site: Site) -> None:
    for i in range(3000):
        site.write(f"sub/{i:05}")
    end = site.open(writing=False)
    for _ in end.entries(site.name("sub")):
        break
    end.close()


@pytest.mark.parametrize("name", ["missing", "file"])
def test_entries_of_what_is_no_folder(site: Site, name: str) -> None:
    site.write("file")
    with pytest.raises(SourceError, match=name):
        list(site.open(writing=False).entries(site.name(name)))
    with pytest.raises(DestinationError, match=name):
        list(site.open(writing=True).entries(site.name(name)))


def test_stat_of_awkward_names(site: Site, end: Endpoint) -> None:
    for name in AWKWARD:
        site.write(f"sub/{name}", name.encode())
    for name in AWKWARD:
        info = end.stat(site.name(f"sub/{name}"))
        assert info is not None, name
        assert info.size_bytes == len(name)


# --- changing --------------------------------------------------------------------------------------


def made(end: Endpoint, name: str) -> bool:
    """Make one folder; return whether it is new."""
    (result,) = end.make_folders([name])
    if isinstance(result, MpxError):
        raise result
    return result


def test_make_folder_with_its_parents(site: Site, end: Endpoint) -> None:
    assert made(end, site.name("a/b/c d/e"))
    assert (site.folder / "a/b/c d/e").is_dir()
    assert not made(end, site.name("a/b"))
    assert made(end, site.name("a/b/f/"))
    assert (site.folder / "a/b/f").is_dir()


def test_make_folder_where_a_file_is(site: Site, end: Endpoint) -> None:
    site.write("file", b"kept")
    for name in ("file", "file/below", "file/below/that"):
        with pytest.raises(DestinationError, match="file"):
            made(end, site.name(name))
    assert (site.folder / "file").read_bytes() == b"kept"


def test_make_many_folders(site: Site, end: Endpoint) -> None:
    (site.folder / "there").mkdir()
    site.hand_over()
    site.write("file")
    names = ["new", "there", "new/below", "file", "far/away/from", "far/away", *(f"n{i}" for i in range(500))]
    results = end.make_folders([site.name(name) for name in names])
    assert isinstance(results[3], DestinationError)
    assert "file" in str(results[3])
    del results[3]
    assert results == [True, False, True, True, False, *[True] * 500]
    assert all((site.folder / name).is_dir() for name in names if name != "file")


def test_make_folder_through_a_link(site: Site, end: Endpoint) -> None:
    made(end, site.name("real"))
    (site.folder / "link").symlink_to("real")
    made(end, site.name("link"))
    made(end, site.name("link/below"))
    assert (site.folder / "real/below").is_dir()


@pytest.mark.parametrize("target", ["x", "../up/there", "/absolute/name", "with a blank", "50%20;a=b"])
def test_make_link(links: Site, target: str) -> None:
    end = links.open(writing=True)
    made = end.make_link(links.name("the link"), target) if links.links == "any" else target
    if links.links == "absolute":
        there = links.write(f"sub/{target.lstrip('./')}", b"x")
        made = end.make_link(links.name("sub/../the link"), os.path.relpath(there, links.folder))
        target = str(there)
    assert str((links.folder / "the link").readlink()) == made == target
    assert [path.name for path in links.folder.glob(".*")] == []


def test_make_link_to_nowhere(links: Site) -> None:
    end = links.open(writing=True)
    if links.links == "any":
        assert end.make_link(links.name("link"), "nowhere") == "nowhere"
    else:
        with pytest.raises(DestinationError, match="nowhere"):
            end.make_link(links.name("link"), "nowhere")
        assert list(links.folder.iterdir()) == []


def test_make_link_replaces_a_link_or_a_file(links: Site) -> None:
    end = links.open(writing=True)
    for name in ("old", "new", "file"):
        links.write(name)
    for target in ("old", "new"):
        end.make_link(links.name("link"), target)
        assert (links.folder / "link").resolve().name == target
    end.make_link(links.name("file"), "new")
    assert (links.folder / "file").resolve().name == "new"
    assert sorted(path.name for path in links.folder.iterdir()) == ["file", "link", "new", "old"]


def test_make_link_never_replaces_a_folder(site: Site, end: Endpoint) -> None:
    site.write("folder/file")
    with pytest.raises(DestinationError, match="folder"):
        end.make_link(site.name("folder"), "folder/file")
    assert (site.folder / "folder/file").exists()
    assert [path.name for path in site.folder.iterdir()] == ["folder"]


def test_remove(site: Site, end: Endpoint) -> None:
    site.write("file")
    site.write("kept")
    (site.folder / "link").symlink_to("kept")
    end.remove(site.name("file"))
    end.remove(site.name("file"))
    end.remove(site.name("link"))
    end.remove(site.name("no folder/file"))
    assert [path.name for path in site.folder.iterdir()] == ["kept"]


def test_remove_does_not_remove_folders(site: Site, end: Endpoint) -> None:
    site.write("folder/file")
    with pytest.raises(DestinationError, match="folder"):
        end.remove(site.name("folder"))
    assert (site.folder / "folder/file").exists()


# --- committing ------------------------------------------------------------------------------------


def commit_of(site: Site, name: str, data: bytes = b"data", **more: float | int | None) -> Commit:
    site.write(f"{name}.part", data)
    given = {"modified_s": None, "mode": None, **more}
    return Commit(site.name(f"{name}.part"), site.name(name), given["modified_s"], given["mode"])


def test_commit_gives_name_time_and_mode(site: Site, end: Endpoint) -> None:
    commit = commit_of(site, "a b", modified_s=MODIFIED_S + 0.75, mode=0o640)
    assert list(end.commit([commit], untold)) == [None]
    status = (site.folder / "a b").stat()
    assert status.st_mtime == (MODIFIED_S + 0.75 if site.keeps_fractions else MODIFIED_S)
    assert status.st_mode & 0o7777 == 0o640
    assert not (site.folder / "a b.part").exists()


def test_commit_drops_set_user_id_bits(site: Site, end: Endpoint) -> None:
    end.commit([commit_of(site, "a", mode=0o6755)], untold)
    assert (site.folder / "a").stat().st_mode & 0o7777 == 0o755


@pytest.mark.parametrize("modified_s", [0, 1, -86400 * 365, 4_294_967_296, 1e15, -1e15])
def test_commit_with_strange_times(site: Site, end: Endpoint, modified_s: float) -> None:
    told: list[str] = []
    assert list(end.commit([commit_of(site, "a", modified_s=modified_s)], told.append)) == [None]
    assert (site.folder / "a").exists()


def test_commit_replaces_a_file(site: Site, end: Endpoint) -> None:
    site.write("a", b"old")
    assert list(end.commit([commit_of(site, "a", b"new")], untold)) == [None]
    assert (site.folder / "a").read_bytes() == b"new"


def test_commit_replaces_a_link_and_not_what_it_points_to(site: Site, end: Endpoint) -> None:
    site.write("real", b"real")
    (site.folder / "a").symlink_to("real")
    assert list(end.commit([commit_of(site, "a", b"new")], untold)) == [None]
    assert (site.folder / "real").read_bytes() == b"real"
    assert not (site.folder / "a").is_symlink()


def test_commit_of_a_group(site: Site, end: Endpoint) -> None:
    files = [commit_of(site, f"{i}", str(i).encode(), modified_s=i, mode=0o600 + i % 8) for i in range(300)]
    assert list(end.commit(files, untold)) == [None] * 300
    for i in range(300):
        path = site.folder / str(i)
        assert path.read_bytes() == str(i).encode()
        assert (path.stat().st_mtime, path.stat().st_mode & 0o777) == (i, 0o600 + i % 8)


def test_commit_where_some_fail(site: Site, end: Endpoint) -> None:
    files = [commit_of(site, name) for name in ("a", "b", "c", "d")]
    (site.folder / "b.part").unlink()
    (site.folder / "c").mkdir()
    results = end.commit(files, untold)
    assert (results[0], results[3]) == (None, None)
    for result, name in ((results[1], "b"), (results[2], "c")):
        assert isinstance(result, DestinationError)
        assert name in str(result)
    assert (site.folder / "a").exists()
    assert (site.folder / "d").exists()
    assert (site.folder / "c").is_dir()


def test_commit_into_a_folder_that_is_gone(site: Site, end: Endpoint) -> None:
    site.write("a.part")
    results = end.commit([Commit(site.name("a.part"), site.name("gone/a"), None, None)], untold)
    assert isinstance(results[0], DestinationError)


def test_set_times_of_a_folder(site: Site, end: Endpoint) -> None:
    site.write("sub/file")
    end.set_times([Stamp(site.name("sub"), MODIFIED_S, 0o750)], untold)
    assert (site.folder / "sub").stat().st_mtime == MODIFIED_S
    assert (site.folder / "sub").stat().st_mode & 0o777 == 0o750
    told: list[str] = []
    end.set_times([Stamp(site.name("missing"), MODIFIED_S, 0o750)], told.append)  # best effort: no error
    assert len(told) == 2
    assert "times" in told[1]
    assert "modes" in told[0]
    end.set_times([Stamp(site.name("sub"), None, None)], untold)
    assert (site.folder / "sub").stat().st_mtime == MODIFIED_S


# --- checking --------------------------------------------------------------------------------------


def adler32_hex(data: bytes) -> str:
    return f"{zlib.adler32(data):08x}"


def md5_hex(data: bytes) -> str:
    return hashlib.md5(data).hexdigest()


def sha256_hex(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


ALGORITHMS = {"adler32": adler32_hex, "md5": md5_hex, "sha256": sha256_hex}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_checksums_of_parts(site: Site, end: Endpoint, algorithm: str) -> None:
    data = os.urandom(3_000_000)
    site.write("a; b", data)
    site.write("empty")
    ranges = [(0, 3_000_000), (0, 1), (1, 2), (1_048_575, 1_048_577), (2_999_999, 3_000_000), (5, 5)]
    parts = [Part(site.name("a; b"), start, end_) for start, end_ in ranges]
    sums = end.checksums(algorithm, [*parts, Part(site.name("empty"), 0, 0)], lambda: False)
    wanted = ALGORITHMS[algorithm]
    assert end.can_checksum(algorithm)
    assert sums == [*(wanted(data[start:end_]) for start, end_ in ranges), wanted(b"")]


def test_checksums_where_one_fails(site: Site) -> None:
    site.write("a", b"abc")
    end = site.open(writing=False)
    parts = [Part(site.name("a"), 0, 3), Part(site.name("missing"), 0, 3), Part(site.name("a"), 0, 3)]
    sums = end.checksums("adler32", parts, lambda: False)
    assert (sums[0], sums[2]) == (adler32_hex(b"abc"),) * 2
    assert isinstance(sums[1], SourceError)
    assert "missing" in str(sums[1])


def test_very_many_checksums(site: Site, end: Endpoint) -> None:
    data = os.urandom(1000)
    site.write("a", data)
    sums = end.checksums("adler32", [Part(site.name("a"), i, i + 1) for i in range(1000)], lambda: False)
    assert sums == [adler32_hex(data[i : i + 1]) for i in range(1000)]


def test_no_checksum_that_nobody_knows(end: Endpoint) -> None:
    assert not end.can_checksum("crc999")


# --- everything else -------------------------------------------------------------------------------


def test_free_bytes(site: Site, end: Endpoint) -> None:
    free = end.free_bytes(site.name("not/there/yet"))
    assert free is None or free > 0


def test_rtt_is_positive_or_unknown(end: Endpoint) -> None:
    rtt = end.measure_rtt()
    assert rtt is None or rtt.asked_s > 0
    assert rtt is None or (rtt.kernel_s is not None and 0 < rtt.kernel_s < 1)


@pytest.mark.parametrize("bad", ["a\rb", "a\nb", "a\0b"])
def test_names_that_cannot_be_carried_are_refused_before_anything_is_sent(site: Site, bad: str) -> None:
    end = site.open(writing=True)
    if "\0" not in bad and not site.url.startswith("ftp"):
        end.check_name(site.name(bad))  # a local file may have such a name
        return
    with pytest.raises(UsageError, match=r"carriage return|line feed|NUL"):
        end.check_name(site.name(bad))


def test_errors_name_the_role(site: Site) -> None:
    too_long = site.name("x" * 300)
    for writing, error in ((False, SourceError), (True, DestinationError)):
        end = site.open(writing=writing)
        with pytest.raises(error, match="xxx"):
            end.stat(too_long)
        with pytest.raises(error, match="missing"):
            list(end.entries(site.name("missing")))
        with pytest.raises(error, match="xxx"):
            made(end, too_long)


def test_close_twice_and_use_again(site: Site, end: Endpoint) -> None:
    site.write("a", b"1")
    assert end.stat(site.name("a"))
    end.close()
    end.close()
    assert end.stat(site.name("a"))
