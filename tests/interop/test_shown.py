"""What `mpx copy` prints: progress, details and the last line, as a user sees them."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from mpx_command import command, copied, mpx, refused
from sites import Site, make

pytestmark = pytest.mark.peers


def test_no_word_at_all_is_answered_with_the_help() -> None:
    ended = mpx()
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == mpx("--help").out


def test_the_help_of_copy_goes_a_long_way() -> None:
    said = " ".join(mpx("copy", "--help").out.split())
    for word in (
        "https://HOST[:PORT]/NAME", "davs and dav", "gsiftp and ftp", "ssh, which uses SFTP", "s3://BUCKET/KEY",
        "mpx copy -r run7 davs://", "MPX_PASSWORD", "10 some files of several failed", "docs/user-guide.md",
        "[default: continue]", "as 800Mbit/s", "as 4MiB",
    ):  # fmt: skip
        assert word in said, word


def test_progress_in_json_ends_with_the_end(far: Site, here: Path) -> None:
    for i in range(3):
        make(here / f"up/{i}", 100_000)
    for more in ((), ("-q",)):  # asked for by name, it is shown
        ended = mpx("copy", "-r", "--overwrite", "always", *more, "--progress", "json", here / "up", far.url)
        assert ended.code == 0
        lines = [json.loads(line) for line in ended.err.splitlines()]
        assert (lines[-1]["files_done"], lines[-1]["files_total"]) == (3, 3)
        assert lines[-1]["bytes_done"] == lines[-1]["bytes_total"] == 300_000
        assert bool(ended.out) == (not more)


def test_plain_progress(far: Site, here: Path) -> None:
    make(here / "a", 100_000)
    ended = mpx("copy", "--progress", "plain", here / "a", far.url)
    assert ended.code == 0
    assert ended.err.splitlines()[-1] == "100%  97.7 KiB of 97.7 KiB  1/1 files"


def test_the_last_line(far: Site, here: Path) -> None:
    make(here / "up/a", 1000)
    assert mpx("copy", "-r", here / "up", far.url).out.startswith(
        f"copied 1 of 1 files to {far.url}, 1000 B in "
    )
    again = mpx("copy", "-r", here / "up", far.url)
    copied(again)
    assert again.out == "nothing to copy: 1 of 1 files skipped, -v says why\n"
    *_, why, last = mpx("copy", "-r", "-v", here / "up", far.url).out.splitlines()
    assert why.endswith("/up/a: already up to date at the destination")
    assert last == "nothing to copy: 1 of 1 files skipped"
    (here / "odd").mkdir()
    os.mkfifo(here / "odd/fifo")
    why, last = mpx("copy", "-r", here / "odd", far.url_of("n")).out.splitlines()
    assert why == f"skipped {here}/odd/fifo: not a regular file"
    assert last == "nothing to copy: 1 of 1 files skipped"
    (here / "empty").mkdir()
    assert mpx("copy", "-r", here / "empty", far.url_of("e")).out == "nothing to copy: there are no files\n"


def test_names_are_shown_as_they_are(far: Site, here: Path) -> None:
    """Also in URLs, which the report has as they are typed; what would not show is escaped."""
    make(here / "a", 10)
    name = "x & 100%25" if far.resolves_links else "ü & 100%25"  # a Globus server takes only ASCII
    there, typed = f"{far.url}{name}", far.url_of(name)
    report = here / "r.json"
    assert mpx("copy", "--report", report, here / "a", typed).out.startswith(
        f"copied 1 of 1 files to {there}, "
    )
    assert json.loads(report.read_text())["destination"] == typed
    assert f"from {here}/a to {there}\n" in mpx("explain", report).out
    refused(mpx("copy", f"{typed}/none", here / "b"), 3, f"{there}/none does not exist")
    (here / "up").mkdir()
    for line in ("a\nb", "c"):
        make(here / "up" / line, 10)
    (here / "down/a\nb").mkdir(parents=True)
    ended = mpx("copy", "-r", here / "up", here / "down")
    refused(ended, 10, "1 of 2 files were not copied")
    named = ended.err.splitlines()[0]
    assert named.startswith(
        f"mpx: not copied '{here}/up/a\\x0ab': cannot write '{here}/down/a\\x0ab': there is"
    )


def test_a_source_that_changed_since_it_was_interrupted(
    stock: Site, here: Path, eventually: Callable[..., None]
) -> None:
    source, target = make(here / "a", 6_000_000), stock.url_of("x")
    with subprocess.Popen(command("copy", "-q", "--rate", "8Mbit/s", source, target)) as process:
        eventually(lambda: any(path.stat().st_blocks for path in stock.folder.glob(".*.part")))
        process.send_signal(signal.SIGKILL)
    make(source, 5_000_000)
    ended = mpx("copy", source, target)
    copied(ended)
    note, last = ended.out.splitlines()
    assert re.fullmatch(
        rf"note: {re.escape(str(source))} has changed since its copy was interrupted "
        r"\(6000000 bytes then, 5000000 now, "
        r"modified [0-9 :.-]+Z then, [0-9 :.-]+Z now\); starting over, and what had arrived is discarded",
        note,
    )
    assert last.startswith("copied 1 of 1 files")
    assert (stock.folder / "x").read_bytes() == source.read_bytes()


def test_why_it_is_unverified(vsftpd, here: Path) -> None:
    url, _ = vsftpd
    make(here / "a", 10)
    first, second = mpx("copy", here / "a", f"{url}/a").out.splitlines()
    assert first.endswith(", unverified")
    assert second.startswith("unverified: the server computes no checksums")


def test_loud_and_quiet(here: Path) -> None:
    make(here / "a", 10)
    refused(mpx("copy", "-q", "-v", here / "a", here / "b"), 2, "-q")
    assert not (here / "b").exists()
