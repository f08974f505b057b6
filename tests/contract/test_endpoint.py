"""What every endpoint must tell, whatever it talks to: names, checksums, and what cannot be had."""

import hashlib
import os
import zlib

import pytest
import xxhash
from random_bytes import random_bytes
from sites import Site

from mpx.endpoints.schemes import capabilities_of
from mpx.engine.capabilities import Question, RangeReads
from mpx.engine.endpoint import Endpoint, FileInfo, Kind, Part
from mpx.errors import DestinationError, MpxError, NoChecksum, SourceError, UsageError

MODIFIED_S = 1_234_567_890


# --- describing ------------------------------------------------------------------------------------


def test_stat_of_a_file(site: Site, end: Endpoint) -> None:
    path = site.write("a", b"12345")
    path.chmod(0o640)
    os.utime(path, (0, MODIFIED_S))
    info = end.stat(site.name("a"))
    assert info is not None
    assert (info.kind, info.size_bytes, info.modified_s) == (Kind.FILE, 5, MODIFIED_S)
    assert info.mode == (0o640 if site.keeps_modes else None)


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
    if not site.follows_links:
        for found in end.stats([site.name(name) for name in ("relative", "chain", "folder link")]):
            assert isinstance(found, DestinationError)
        return
    for name in ("relative", "chain", "sub/up", "folder link/file", "folder link/up"):
        info = end.stat(site.name(name))
        assert info is not None, name
        assert (info.kind, info.size_bytes) == (Kind.FILE, 3), name
    (found,) = end.stats([site.name("dangling")])
    assert isinstance(found, DestinationError) if site.refuses_broken else found is None
    folder = end.stat(site.name("folder link"))
    assert folder is not None
    assert folder.kind is Kind.FOLDER


def test_stat_without_following(site: Site, end: Endpoint) -> None:
    target = "some where; with=signs %41"
    site.write(target)
    (site.folder / "link").symlink_to(target)
    (info,) = end.stats([site.name("link")], follow=False)
    if not site.shows_links:
        assert isinstance(info, FileInfo if site.follows_links else DestinationError)
        return
    assert isinstance(info, FileInfo)
    assert info.kind is Kind.LINK
    assert info.link_target == (str(site.folder / target) if site.resolves_links else target)
    assert info.link_resolved == site.resolves_links


def test_stat_of_a_loop_of_links(site: Site, end: Endpoint) -> None:
    (site.folder / "a").symlink_to("b")
    (site.folder / "b").symlink_to("a")
    (site.folder / "self").symlink_to("self")
    for found in end.stats([site.name(name) for name in ("a", "self/below", "self")]):
        assert isinstance(found, DestinationError) if site.refuses_loops else found is None


def test_stat_of_a_fifo(site: Site, end: Endpoint) -> None:
    os.mkfifo(site.folder / "fifo")
    info = end.stat(site.name("fifo"))
    if site.shows_links:
        assert info is not None
        assert info.kind is Kind.OTHER
    else:
        assert info is None or info.size_bytes == 0


def test_only_here_a_fifo_can_be_a_source(site: Site, end: Endpoint) -> None:
    os.mkfifo(site.folder / "fifo")
    if end.capabilities.is_here:
        assert end.special_source(site.name("fifo")) == FileInfo(Kind.FILE, None)
    else:
        with pytest.raises(SourceError, match="not a regular file at"):
            end.special_source(site.name("fifo"))


def test_no_endpoint_here_needs_a_fallback(end: Endpoint) -> None:
    assert end.find_out(Question.FALLBACK).fallback == ""


def test_stats_answers_in_order(site: Site, end: Endpoint) -> None:
    site.write("a", b"1")
    site.write("c", b"333")
    site.write("link", b"333")
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
    assert isinstance(found[0], DestinationError) if site.knows_long else found[0] is None
    assert found[1] is not None
    assert not isinstance(found[1], MpxError)


def test_stat_of_awkward_names(site: Site, end: Endpoint) -> None:
    for name in site.awkward:
        site.write(f"sub/{name}", name.encode())
    for name in site.awkward:
        info = end.stat(site.name(f"sub/{name}"))
        assert info is not None, name
        assert info.size_bytes == len(name)


# --- checking --------------------------------------------------------------------------------------


def adler32_hex(data: bytes) -> str:
    return f"{zlib.adler32(data):08x}"


def md5_hex(data: bytes) -> str:
    return hashlib.md5(data).hexdigest()


def sha256_hex(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def xxh3_hex(data: bytes) -> str:
    blocks = [data[start : start + 256 * 1024] for start in range(0, len(data), 256 * 1024)]
    return xxhash.xxh3_128_hexdigest(b"".join(map(xxhash.xxh3_128_digest, blocks)))


ALGORITHMS = {"adler32": adler32_hex, "md5": md5_hex, "sha256": sha256_hex, "xxh3": xxh3_hex}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_checksums_of_parts(site: Site, end: Endpoint, algorithm: str) -> None:
    data = random_bytes(3_000_000)
    site.write("a; b", data)
    site.write("empty")
    ranges = [(0, 3_000_000), (0, 1), (1, 2), (1_048_575, 1_048_577), (2_999_999, 3_000_000), (5, 5)]
    if not site.sums_parts:
        del ranges[1:]
    parts = [Part(site.name("a; b"), at, to, is_whole=to - at == len(data)) for at, to in ranges]
    parts.append(Part(site.name("empty"), 0, 0, is_whole=True))
    sums = end.checksums(algorithm, parts, lambda: False)
    wanted = ALGORITHMS[algorithm]
    if algorithm not in end.find_out(Question.CHECKSUMS).checksums:
        assert algorithm not in site.checksums  # xxh3 is our own
        assert all(isinstance(told, NoChecksum) for told in sums)
        return
    assert sums == [*(wanted(data[start:end_]) for start, end_ in ranges), wanted(b"")]


def test_checksums_where_one_fails(site: Site) -> None:
    site.write("a", b"abc")
    end = site.open(writing=False)
    parts = [Part(site.name(name), 0, 3, is_whole=True) for name in ("a", "missing", "a")]
    algorithm = next(iter(site.checksums), "adler32")
    sums = end.checksums(algorithm, parts, lambda: False)
    if not site.checksums:
        assert all(isinstance(told, NoChecksum) for told in sums)
        return
    assert (sums[0], sums[2]) == (ALGORITHMS[algorithm](b"abc"),) * 2
    error = sums[1].refusal if isinstance(sums[1], NoChecksum) else sums[1]
    assert isinstance(error, SourceError)
    assert "missing" in str(sums[1])


def test_very_many_checksums(site: Site, end: Endpoint) -> None:
    data = random_bytes(1000)
    site.write("a", data)
    algorithm = next(iter(site.checksums), "adler32")
    ranges = [(i, i + 1) for i in range(1000)] if site.sums_parts else [(0, 1000)] * 100
    parts = [Part(site.name("a"), start, stop, is_whole=stop - start == 1000) for start, stop in ranges]
    sums = end.checksums(algorithm, parts, lambda: False)
    if not site.checksums:
        assert all(isinstance(told, NoChecksum) for told in sums)
        return
    assert sums == [ALGORITHMS[algorithm](data[start:stop]) for start, stop in ranges]


def test_a_server_can_no_more_than_its_scheme(end: Endpoint) -> None:
    best, found = capabilities_of(end.location), end.find_out(Question.CHECKSUMS)
    assert set(found.checksums) <= set(best.checksums)
    assert set(found.part_checksums) <= set(best.part_checksums) & set(found.checksums)
    assert found.reads in (best.reads, RangeReads.NONE)
    assert (found.owns_streams, found.is_here) in ((best.owns_streams, best.is_here), (False, False))


# --- everything else -------------------------------------------------------------------------------


def test_free_bytes(site: Site, end: Endpoint) -> None:
    free = end.free_bytes(site.name("not/there/yet"))
    assert free is None or free > 0


def test_rtt_is_positive_or_unknown(end: Endpoint) -> None:
    rtt = end.measure_rtt()
    assert rtt is None or rtt.asked_s > 0
    assert rtt is None or rtt.kernel_s is None or 0 < rtt.kernel_s < 1
    assert rtt is None or (rtt.kernel_s is None) == (not end.capabilities.owns_streams)


@pytest.mark.parametrize("bad", ["a\rb", "a\nb", "a\0b"])
def test_names_that_cannot_be_carried_are_refused_before_anything_is_sent(site: Site, bad: str) -> None:
    end = site.open(writing=True)
    if "\0" not in bad and site.carries_lines:
        end.check_name(site.name(bad))  # a file may have such a name
        return
    with pytest.raises(UsageError, match=r"carriage return|line feed|NUL"):
        end.check_name(site.name(bad))


def test_close_twice_and_use_again(site: Site, end: Endpoint) -> None:
    site.write("a", b"1")
    assert end.stat(site.name("a"))
    end.close()
    end.close()
    assert end.stat(site.name("a"))
