"""Single files, up and down, byte for byte: sizes around every edge, and the names that files really have."""

import filecmp
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from mpx_command import copied, mpx, refused
from random_bytes import random_bytes
from sites import AWKWARD, Site, make, opened

import mpx as api
from mpx.engine.checksum import SECTION_BYTES
from mpx.text import shown

pytestmark = pytest.mark.peers

KIB, MIB, GIB = 1024, 1024**2, 1024**3
SMALL = (0, 1, 2, 255, 64 * KIB - 1, 64 * KIB, 64 * KIB + 1, 256 * KIB - 1, 256 * KIB, 256 * KIB + 1, 999_983)
MEDIUM = (4 * MIB - 1, 4 * MIB, 4 * MIB + 1, 16 * MIB + 3, 33_333_331)
FOREIGN = ("ü", "漢字 and blanks", "\u202eevil", "caf\udce9", "\x7f", "tab\there", "\x1b[31mred")


def verified(far: Site, size: int) -> dict[str, object]:
    """Return what the report says of one file: the best checksum that its server has for the size."""
    stocks = "sha256" if size <= MIB else "adler32"
    algorithm = "xxh3" if far.has_xxh3 else stocks
    return {"algorithm": algorithm, "result": "verified", "bytes": {algorithm: size} if size else {}}


def same(first: Path, second: Path) -> bool:
    return filecmp.cmp(first, second, shallow=False)


# --- sizes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 4 * MIB + 1])
@pytest.mark.parametrize("streams", [None, 1, 5])
def test_one_file_up_and_down(far: Site, here: Path, size: int, streams: int | None) -> None:
    make(here / "a", size)
    options = api.CopyOptions(streams=streams)
    up = api.copy(str(here / "a"), far.url_of("a"), options)
    down = api.copy(far.url_of("a"), str(here / "b"), options)
    assert same(here / "a", far.folder / "a")
    assert same(here / "a", here / "b")
    for report in (up, down):
        assert (report.files.moved, report.bytes.moved, report.status) == (1, size, "done")
        assert report.checksum == verified(far, size)
    assert sorted(os.listdir(here)) == ["a", "b"]
    assert os.listdir(far.folder) == ["a"]


@pytest.mark.parametrize("algorithm", ["adler32", "md5", "sha256", "none"])
def test_all_sizes_up_and_down(far: Site, here: Path, algorithm: str) -> None:
    for size in (*SMALL, *MEDIUM):
        make(here / "up" / f"{size}", size)
    options = api.CopyOptions(recursive=True, checksum=algorithm)
    up = api.copy(str(here / "up"), far.url_of("tree"), options)
    down = api.copy(far.url_of("tree"), str(here / "down"), options)
    for size in (*SMALL, *MEDIUM):
        assert same(here / f"up/{size}", far.folder / f"tree/{size}")
        assert same(here / f"up/{size}", here / f"down/{size}")
    for report in (up, down):
        assert report.files.moved == len(SMALL) + len(MEDIUM)
        assert report.checksum["result"] == ("unverified" if algorithm == "none" else "verified")


@pytest.mark.parametrize("size", [None, 64 * KIB, 1_000_003])
def test_block_sizes(far: Site, here: Path, size: int | None) -> None:
    make(here / "a", 5_000_011)
    api.copy(str(here / "a"), far.url_of("a"), api.CopyOptions(block_size_bytes=size, streams=3))
    assert same(here / "a", far.folder / "a")


def test_all_sizes_within_this_host(here: Path) -> None:
    for size in (*SMALL, *MEDIUM):
        make(here / "from" / f"{size}", size)
    report = api.copy(str(here / "from"), str(here / "to"), api.CopyOptions(recursive=True))
    for size in (*SMALL, *MEDIUM):
        assert same(here / f"from/{size}", here / f"to/{size}")
    assert report.checksum["result"] == "verified"


def sparse(path: Path, size: int) -> None:
    """Make a file of holes, with data at its ends and across the edges of sections and of 32 bits."""
    with path.open("wb") as out:
        out.truncate(size)
        for offset in (0, SECTION_BYTES - 700_001, 4 * GIB - 500_000, size - 999_999):
            if 0 <= offset < size:
                out.seek(offset)
                out.write(random_bytes(min(999_999, size - offset)))


def test_a_file_across_a_section(far: Site, here: Path) -> None:
    sparse(here / "a", SECTION_BYTES + 1)
    api.copy(str(here / "a"), far.url_of("a"))
    api.copy(far.url_of("a"), str(here / "b"))
    assert same(here / "a", here / "b")


@pytest.fixture
def roomy(tmp_path: Path) -> Iterator[Path]:
    """A folder with room for a large file: in memory if there is plenty, since disks are slow."""
    if os.access("/dev/shm", os.W_OK) and shutil.disk_usage("/dev/shm").free > 10 * GIB:
        with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="mpx-test-") as folder:
            Path(folder).chmod(0o755)
            yield Path(folder)
    else:
        yield tmp_path


@pytest.mark.long
def test_five_gibibytes_with_holes(roomy: Path) -> None:
    size = 5 * GIB + 1
    with opened("stock server", roomy) as stock:
        there, here = stock.folder / "a", roomy / "a"
        sparse(here, size)
        up = api.copy(str(here), stock.url_of("a"))
        assert subprocess.run(["cmp", here, there], check=False).returncode == 0
        here.unlink()
        there.unlink()
        sparse(there, size)
        down = api.copy(stock.url_of("a"), str(here))
        assert subprocess.run(["cmp", here, there], check=False).returncode == 0
    for report in (up, down):
        assert (report.bytes.moved, report.checksum["result"]) == (size, "verified")


# --- names -----------------------------------------------------------------------------------------


def test_awkward_names_up_and_down(far: Site, here: Path) -> None:
    for name in AWKWARD:
        make(here / "up" / name, len(name))
    api.copy(str(here / "up"), far.url_of("tree"), api.CopyOptions(recursive=True))
    api.copy(far.url_of("tree"), str(here / "down"), api.CopyOptions(recursive=True))
    for name in AWKWARD:
        assert same(here / "up" / name, far.folder / "tree" / name), name
        assert same(here / "up" / name, here / "down" / name), name


def test_awkward_names_one_by_one(far: Site, here: Path) -> None:
    for name in AWKWARD:
        make(here / name, 7)
        there = f"folder/{name}"
        api.copy(str(here / name), far.url_of(there))
        api.copy(far.url_of(there), str(here / "back"), api.CopyOptions(overwrite="always"))
        assert same(here / name, far.folder / there), name
        assert same(here / name, here / "back"), name


@pytest.mark.parametrize("name", ["-rf", "ends in a blank ", "50%20off", "it's", "a#b", "~"])
def test_an_awkward_name_on_the_command_line(stock: Site, here: Path, name: str) -> None:
    make(here / name, 7)
    plain = f"./{name}" if name.startswith("-") else name
    copied(mpx("copy", plain, stock.url_of(name), folder=here))
    assert same(here / name, stock.folder / name)
    (here / name).unlink()
    copied(mpx("copy", "--", stock.url_of(name), name, folder=here))
    assert same(here / name, stock.folder / name)


def test_plain_names_are_never_decoded_and_urls_are(far: Site, here: Path) -> None:
    make(here / "a%41%2F", 1)
    make(here / "aA", 2)
    api.copy(str(here / "a%41%2F"), far.url + "x%41")
    assert (far.folder / "xA").stat().st_size == 1
    api.copy((here / "a%41%2F").as_uri(), far.url + "x%2541")
    assert (far.folder / "x%41").stat().st_size == 1
    api.copy(f"file:{here}/a%41", far.url + "y")
    assert (far.folder / "y").stat().st_size == 2
    api.copy(far.url + "x%2541", str(here / "back%41"))
    assert (here / "back%41").stat().st_size == 1
    with pytest.raises(api.SourceError):
        api.copy(far.url + "x%252541", str(here / "z"))


def test_names_with_a_question_mark_are_names(far: Site, here: Path) -> None:
    make(here / "a?b=c#d", 3)
    api.copy(str(here / "a?b=c#d"), far.url + "a?b=c#d")
    assert (far.folder / "a?b=c#d").stat().st_size == 3


def test_deep_folders(far: Site, here: Path) -> None:
    deep = "/".join(["a folder of some depth"] * 60)
    make(here / "up" / deep / "file", 9)
    api.copy(str(here / "up"), far.url_of("tree"), api.CopyOptions(recursive=True))
    api.copy(far.url_of("tree"), str(here / "down"), api.CopyOptions(recursive=True))
    assert same(here / "up" / deep / "file", here / "down" / deep / "file")


def test_the_login_folder(far: Site, here: Path) -> None:
    make(here / "a", 5)
    root = far.url[: -len(str(far.folder)) - 1] if str(far.folder) in far.url else far.url.rstrip("/")
    api.copy(str(here / "a"), f"{root}/~/b")
    api.copy(str(here / "a"), f"{root}/~/")
    api.copy(str(here), f"{root}/~", api.CopyOptions(recursive=True, overwrite="always"))
    assert sorted(os.listdir(far.folder)) == ["a", "b"]


@pytest.mark.parametrize("site", ["local", "mpx serve"])
def test_foreign_names(site: str, tmp_path: Path, here: Path) -> None:
    with opened(site, tmp_path) as far:
        for name in FOREIGN:
            make(here / "up" / name, 5)
        api.copy(str(here / "up"), far.url_of("tree"), api.CopyOptions(recursive=True))
        api.copy(far.url_of("tree"), str(here / "down"), api.CopyOptions(recursive=True))
        for name in FOREIGN:
            assert same(here / "up" / name, here / "down" / name), ascii(name)
            api.copy(str(here / "up" / name), far.url_of(name))
            api.copy(far.url_of(name), str(here / "back" / name))
            assert same(here / "up" / name, here / "back" / name), ascii(name)
        copied(mpx("copy", here / "up" / FOREIGN[3], far.url_of("by command")))


@pytest.mark.parametrize("name", [name for name in FOREIGN if "\t" not in name], ids=ascii)
def test_a_globus_server_would_garble_foreign_names(stock: Site, here: Path, name: str) -> None:
    make(here / name, 5)
    refused(mpx("copy", here / name, stock.url_of(name)), 2, "printable ASCII", f"/{shown(name)}', or")
    stock.write(name, b"x")
    refused(mpx("copy", stock.url_of(name), here / "down"), 2, "printable ASCII")
    assert os.listdir(stock.folder) == [name]


def test_in_a_tree_a_garbled_name_fails_alone(stock: Site, here: Path) -> None:
    for name in ("good", "ü", "folder/also good", "földer/inside"):
        make(here / "up" / name, 5)
    with pytest.raises(api.PartialFailure) as caught:
        api.copy(str(here / "up"), stock.url_of("tree"), api.CopyOptions(recursive=True))
    report = caught.value.report
    assert report is not None
    assert {Path(entry["name"]).name for entry in report.failures} == {"ü", "földer", "inside"}
    assert sorted(os.listdir(stock.folder / "tree")) == ["folder", "good"]
    for name in ("ü", "földer/inside"):
        stock.write(f"tree/{name}", b"x")
    with pytest.raises(api.PartialFailure) as caught:
        api.copy(stock.url_of("tree"), str(here / "down"), api.CopyOptions(recursive=True))
    assert sorted(os.listdir(here / "down")) == ["folder", "good"]
    assert same(here / "up/folder/also good", here / "down/folder/also good")


@pytest.mark.parametrize(("char", "word"), [("\r", "carriage return"), ("\n", "line feed")])
def test_names_with_line_ends_are_refused_before_anything_is_sent(
    stock: Site, here: Path, char: str, word: str
) -> None:
    bad = make(here / f"a{char}b", 5)
    make(here / "ok", 5)
    refused(mpx("copy", bad, stock.url), 2, word)
    refused(mpx("copy", here / "ok", stock.url_of(f"a{char}b")), 2, word)
    refused(mpx("copy", stock.url_of(f"a{char}b"), here / "x"), 2, word)
    refused(mpx("copy", here / "ok", bad, stock.url), 2, word)
    assert os.listdir(stock.folder) == []
    log = Path(f"{stock.folder}.server.log").read_bytes()
    assert b"STOR /" not in log
    copied(mpx("copy", bad, stock.url_of("renamed")))
    copied(mpx("copy", stock.url_of("renamed"), here / f"down{char}"))
    copied(mpx("copy", bad, here / f"local{char}copy"))
    assert same(bad, here / f"down{char}")


def test_nul_is_refused(stock: Site, here: Path) -> None:
    make(here / "ok", 5)
    refused(mpx("copy", here / "ok", stock.url + "a%00b"), 2, "NUL")
    refused(mpx("copy", stock.url + "a%00b", here / "x"), 2, "NUL")
    refused(mpx("copy", f"file://{here}/a%00b", stock.url), 2)
    for pair in ((f"{here}/a\0b", stock.url), (str(here / "ok"), "a\0b")):
        with pytest.raises(api.UsageError, match="NUL"):
            api.copy(*pair)


@pytest.mark.parametrize("char", ["\r", "\n"])
def test_in_a_tree_a_line_end_fails_alone(far: Site, here: Path, char: str) -> None:
    for name in ("good", f"a{char}b", f"folder{char}/inside"):
        make(here / "up" / name, 5)
    with pytest.raises(api.PartialFailure):
        api.copy(str(here / "up"), far.url_of("tree"), api.CopyOptions(recursive=True))
    assert os.listdir(far.folder / "tree") == ["good"]


@pytest.mark.parametrize("leads_to", ["elsewhere", "nowhere"])
def test_a_link_where_the_target_name_is(far: Site, here: Path, leads_to: str) -> None:
    """The new file takes the place of the link; what that led to stays as it is."""
    source = make(here / "source", 5_000_000)
    for folder in (here / "down", far.folder):
        folder.mkdir(exist_ok=True)
        (folder / "elsewhere").write_bytes(b"not to be touched")
        (folder / "target").symlink_to(leads_to)
    far.hand_over()
    copied(mpx("copy", source, far.url_of("target")))
    copied(mpx("copy", far.url_of("target"), here / "down/target"))
    for folder in (here / "down", far.folder):
        assert not (folder / "target").is_symlink()
        assert (folder / "target").read_bytes() == source.read_bytes()
        assert (folder / "elsewhere").read_bytes() == b"not to be touched"
        assert not (folder / "nowhere").exists()
