"""`mpx list`, `mpx unfinished`, `mpx --version` and help."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from mpx_command import command, copied, mpx, refused
from sites import AWKWARD, Site, make

import mpx as api

pytestmark = pytest.mark.peers


def listed(*words: object) -> list[str]:
    ended = mpx("list", *words)
    copied(ended)
    return ended.out.splitlines()


def test_list_a_folder(far: Site, here: Path) -> None:
    for name in AWKWARD:
        far.write(f"sub/{name}")
        make(here / name, 0)
    far.write("sub/inner/x")
    (here / "inner").mkdir()
    in_order = sorted([*AWKWARD, "inner"])  # by name, as ls does where LC_ALL is C
    in_order[in_order.index("inner")] += "/"
    assert listed(far.url_of("sub")) == in_order
    assert listed(far.url_of("sub/")) == in_order
    assert listed(here) == in_order


def test_a_long_list_is_sorted_by_name(far: Site) -> None:
    for i in range(50):
        far.write(f"sub/{(i * 37) % 50:02}", b"x" * i)
    assert [line.split()[-1] for line in listed("-l", far.url_of("sub"))] == [f"{i:02}" for i in range(50)]


def test_list_long(far: Site) -> None:
    path = far.write("sub/a b", b"12345")
    path.chmod(0o640)
    os.utime(path, (1_500_000_000, 1_500_000_000))
    (far.folder / "sub/link").symlink_to("a b")
    lines = listed("-l", far.url_of("sub"))
    assert "file    0640               5 2017-07-14 02:40:00Z a b" in lines
    assert any(line.startswith("link ") and line.endswith("a b") and " link -> " in line for line in lines)
    assert listed("-l", far.url_of("sub/a b")) == ["file    0640               5 2017-07-14 02:40:00Z a b"]


def test_list_the_login_folder_and_the_root(far: Site) -> None:
    far.write("a")
    root = far.url[: -len(str(far.folder)) - 1] if str(far.folder) in far.url else far.url.rstrip("/")
    for end in ("/~/", "/~"):
        assert listed(root + end) == ["a"]
    assert listed(root)
    assert listed(root + "/") == listed(root)


def test_list_links_that_lead_nowhere(far: Site) -> None:
    (far.folder / "dangling").symlink_to("nowhere")
    assert listed(far.url) == ["dangling"]


def test_list_prints_names_byte_for_byte_to_programs(here: Path) -> None:
    make(here / "caf\udce9", 0)
    ended = mpx("list", here)
    assert ended.out == "caf\udce9\n"
    copied(mpx("copy", "--from-file", "-", here / "dst", folder=here, stdin=os.fsencode(ended.out)))
    assert os.listdir(os.fsencode(here / "dst")) == [b"caf\xe9"]


def test_version_and_help() -> None:
    ended = mpx("--version")
    copied(ended)
    assert ended.out == f"mpx {api.__version__}\n"
    for words in (
        ["--help"],
        ["copy", "--help"],
        ["list", "-h"],
        ["unfinished", "--help"],
        ["serve", "--help"],
    ):
        ended = mpx(*words)
        copied(ended)
        assert ended.out.startswith("Usage: mpx")


def test_help_names_every_option_with_its_default() -> None:
    out = " ".join(mpx("copy", "-h").out.split())
    for flag in (
        "--recursive", "--from-file", "--dry-run", "--overwrite", "--links", "--files", "--streams",
        "--max-streams", "--max-sessions", "--tuner", "--initial-streams", "--growth", "--chunk-time",
        "--share",
        "--congestion", "--rate", "--block-size", "--checksum", "--continue / --no-continue",
        "--connect-timeout", "--timeout", "--retries", "--port-range", "--source-ports", "--data-address",
        "--report", "--progress", "--verbose", "--quiet", "-4", "-6", "[default: 30s]", "[default: auto]",
        "[default: 256]",
    ):  # fmt: skip
        assert flag in out, flag


@pytest.fixture
def interrupted(stock: Site, here: Path, eventually: Callable[..., None]) -> tuple[str, str]:
    """A copy that was killed: source and destination."""
    source, target = make(here / "a", 6_000_000), stock.url_of("x")
    with subprocess.Popen(command("copy", "-q", "--rate", "8Mbit/s", source, target)) as process:
        eventually(lambda: any(path.stat().st_blocks for path in stock.folder.glob(".*.part")))
        process.send_signal(signal.SIGKILL)
    return str(source), target


def assert_nothing_is_unfinished() -> None:
    ended = mpx("unfinished")
    assert (ended.code, ended.out, ended.err) == (0, "", "nothing is unfinished here\n")


def test_unfinished_and_discard(stock: Site, interrupted: tuple[str, str]) -> None:
    source, target = interrupted
    for _ in range(2):
        ended = mpx("unfinished")
        copied(ended)
        first, *_, last = ended.out.splitlines()
        counts = re.fullmatch(
            re.escape(f"{source} -> {target}") + r": 0 files done, ([01]) partly there, "
            r"[01] without confirmed bytes; at least [0-9.]+ [KM]?i?B of 5\.72 MiB there", first
        )  # fmt: skip
        assert "the same SRC to the same DST" in last
        assert counts
        numbers = re.findall(r"\n    at least ([0-9]+) of 6000000 bytes in ", ended.out)
        assert len(numbers) == int(counts[1])
        assert all(0 < int(number) < 6_000_000 for number in numbers)  # more may be there than is known here
    ended = mpx("unfinished", "--discard")
    copied(ended)
    assert "discarded" in ended.out
    assert os.listdir(stock.folder) == []
    assert_nothing_is_unfinished()


def test_unfinished_names_only_files_that_have_bytes(
    stock: Site, here: Path, eventually: Callable[..., None]
) -> None:
    for i in range(20):
        make(stock.folder / f"tree/small{i:02}", 1000)
    make(stock.folder / "tree/large", 6_000_000)
    for i in range(50):
        make(stock.folder / f"tree/tail{i:02}", 3_000_000)
    words = ("copy", "-q", "-r", "--files", "1", "--rate", "8Mbit/s", stock.url_of("tree"), here / "tree")
    with subprocess.Popen(command(*words)) as process:
        journals = Path(os.environ["MPX_STATE_DIR"])
        eventually(lambda: any(b'"arrived"' in path.read_bytes() for path in journals.glob("*.journal")))
        process.send_signal(signal.SIGKILL)
    ended = mpx("unfinished")
    copied(ended)
    first, *named, _ = ended.out.splitlines()
    counts = re.search(
        r": ([0-9]+) files? done, ([0-9]+) partly there, ([0-9]+) without confirmed bytes;", first
    )
    assert counts, ended.out
    done, partly, rest = map(int, counts.groups())
    assert (done + partly + rest, len(named)) == (71, partly)
    assert 1 <= partly < 20


def test_discard_keeps_what_it_cannot_reach(
    stock: Site, interrupted: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    journals = list(Path(os.environ["MPX_STATE_DIR"]).glob("*.journal"))
    text = journals[0].read_text()
    journals[0].write_text(text.replace(f":{stock.url.split(':')[2].split('/')[0]}/", ":1/", 1))
    ended = mpx("unfinished", "--discard")
    refused(ended, 6, "refused", "--forget")
    assert "kept: " in ended.out
    assert journals[0].exists()
    refused(mpx("unfinished", "--discard", "--forget"), 2, "--forget")
    ended = mpx("unfinished", "--forget")
    copied(ended)
    assert "forgotten" in ended.out
    assert not journals[0].exists()
    assert len(list(stock.folder.glob(".*.part"))) == 1  # whoever finds the server again may remove it


def test_a_journal_that_names_nothing_of_ours_keeps_none_from_being_discarded(
    stock: Site, interrupted: tuple[str, str]
) -> None:
    head = {"mpx": 1, "source": "x", "destination": "gopher://host/x", "boot": ""}
    strange = Path(os.environ["MPX_STATE_DIR"]) / "0.journal"
    strange.write_text(json.dumps(head) + "\n")
    ended = mpx("unfinished", "--discard")
    refused(ended, 2, "gopher://", "--forget")
    assert "discarded" in ended.out
    assert os.listdir(stock.folder) == []
    copied(mpx("unfinished", "--forget"))
    assert not strange.exists()


def test_unfinished_where_there_is_nothing(private_home: Path) -> None:
    assert_nothing_is_unfinished()
    state = Path(os.environ["MPX_STATE_DIR"])
    (state / "x.journal").write_text("no journal of ours\n")
    (state / "y.journal").write_bytes(b"\xff\xfe")
    (state / "z.journal").write_text('{"mpx": 99, "source": 1}\n')
    assert_nothing_is_unfinished()
    (private_home / "a file").write_text("")
    refused(
        mpx("unfinished", environment={"MPX_STATE_DIR": str(private_home / "a file")}), 2, "MPX_STATE_DIR"
    )


def test_no_continue_starts_over(stock: Site, interrupted: tuple[str, str], here: Path) -> None:
    source, target = interrupted
    ended = mpx("copy", "--no-continue", "--report", here / "report", source, target)
    copied(ended)
    assert '"resumed": 0' in (here / "report").read_text()
    assert (stock.folder / "x").read_bytes() == Path(source).read_bytes()
    assert os.listdir(stock.folder) == ["x"]


@pytest.mark.parametrize("kind", ["plain", "json", "none", "auto"])
def test_progress(here: Path, stock: Site, kind: str) -> None:
    make(here / "a", 1_000_000)
    ended = mpx("copy", "--progress", kind, here / "a", stock.url)
    assert ended.code == 0
    shown = {"plain": "% ", "json": '"bytes_done":'}.get(kind)
    assert (shown in ended.err) if shown else ended.err == ""
