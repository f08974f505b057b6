"""Trees, lists of files and odd names to and from web servers, and what is told of them."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from interop.trees import TREE, names
from mpx_command import copied, mpx, refused
from sites import Site, make, own_site, partials
from web.servers.nginx import nginx_site
from web.shared_servers import SharedServers
from web.web_command import mpx_there

import mpx as api
from mpx.endpoints.web.changes import FOLDER_TIMES
from mpx.errors import DestinationError, PartialFailure, SourceError

SMALL_FILES = 2000


def contents(folder: Path) -> dict[str, bytes]:
    """Of all files below a folder."""
    return {name: (folder / name).read_bytes() for name in names(folder) if not name.endswith("/")}


@pytest.fixture(scope="module")
def small_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A tree of them, with empty files, and with folders that nothing is in."""
    tree = tmp_path_factory.mktemp("small") / "tree"
    for i in range(SMALL_FILES):
        make(tree / f"{i % 20}/{i}", i % 97)
    (tree / "empty/below it").mkdir(parents=True)
    yield tree


def test_many_small_files(small_files: Path, here: Path, web_servers: SharedServers) -> None:
    with web_servers.site("nginx") as site:
        sent = api.copy(str(small_files), site.url_of("up"), TREE)
        assert (sent.status, sent.files.moved) == ("done", SMALL_FILES)
        assert names(site.folder / "up") == names(small_files)
        assert contents(site.folder / "up") == contents(small_files)
        brought = api.copy(site.url_of("up"), str(here / "down"), TREE)
        assert brought.files.moved == SMALL_FILES
    assert names(here / "down") == names(small_files)
    assert contents(here / "down") == contents(small_files)


def test_xrootd_bears_what_it_is_asked(here: Path, web_servers: SharedServers) -> None:
    """It crashes where more is asked behind a question that it refuses, as of each file that is missing."""
    for i in range(200):
        make(here / f"tree/{i % 10}/{i}", i % 97)
    with web_servers.site("xrootd") as site:
        for i in range(0, 200, 20):
            site.write(f"up/{i % 10}/{i}", b"older")  # so that the others are looked for
        # No digests, of which it computes two at once and has who wants another wait for half a minute.
        options = api.CopyOptions(recursive=True, checksum="none")
        sent = api.copy(str(here / "tree"), site.url_of("up"), options)
        assert (sent.status, sent.files.moved) == ("done", 200)
        assert contents(site.folder / "up") == contents(here / "tree")
        api.copy(site.url_of("up"), str(here / "down"), options)
    assert contents(here / "down") == contents(here / "tree")


def test_a_tree_goes_up_and_comes_down(web_site: Site, here: Path) -> None:
    odd = [name for name in web_site.awkward if name not in web_site.cannot_rename]
    for name in odd:
        make(here / "tree/sub" / name, 1 + len(name))
    make(here / "tree/large", 3_000_001)
    (here / "tree/empty/one").mkdir(parents=True)
    api.copy(str(here / "tree"), web_site.url_of("a/b"), TREE)
    assert contents(web_site.folder / "a/b") == contents(here / "tree")
    assert names(web_site.folder / "a/b") == names(here / "tree")
    again = api.copy(str(here / "tree"), web_site.url_of("a/b"), TREE)
    assert again.files.moved in (0, len(odd) + 1)
    api.copy(web_site.url_of("a/b"), str(here / "down"), TREE)
    assert contents(here / "down") == contents(here / "tree")
    assert names(here / "down") == names(here / "tree")


def test_a_name_that_a_server_cannot_rename_to_is_refused(web_site: Site, here: Path) -> None:
    for name in web_site.cannot_rename:
        make(here / name, 10)
        with pytest.raises(DestinationError, match="--in-place"):
            api.copy(str(here / name), web_site.url_of(name))
        assert [
            path.name for path in web_site.folder.iterdir() if path not in partials(web_site.folder)
        ] == []
        api.copy(str(here / name), web_site.url_of(name), api.CopyOptions(in_place=True))
        assert (web_site.folder / name).read_bytes() == (here / name).read_bytes()
        (web_site.folder / name).unlink()


@pytest.mark.parametrize(
    ("name", "shorter"), [("resultsé", "results"), ("caf é", "caf"), ("日本", ""), ("x ", "x"), ("a?b", "a")]
)
@pytest.mark.parametrize("in_place", [False, True])
def test_no_other_file_is_replaced_where_a_server_cuts_names_off(
    name: str, shorter: str, in_place: bool, here: Path, web_servers: SharedServers
) -> None:
    make(here / name, 10)
    with web_servers.site("xrootd") as site:
        if shorter:
            site.write(shorter, b"precious")
        options = api.CopyOptions(in_place=in_place)
        if in_place and name != "a?b":
            api.copy(str(here / name), site.url_of(name), options)
            assert (site.folder / name).read_bytes() == (here / name).read_bytes()
        else:
            with pytest.raises(DestinationError):
                api.copy(str(here / name), site.url_of(name), options)
            assert not (site.folder / name).exists()
        if shorter:
            assert (site.folder / shorter).read_bytes() == b"precious"


def test_no_other_folder_is_made_where_a_server_cuts_names_off(
    here: Path, web_servers: SharedServers
) -> None:
    make(here / "tree/sub ?x/file", 10)
    with web_servers.site("xrootd") as site:
        with pytest.raises(PartialFailure, match="ends before the"):
            api.copy(str(here / "tree"), site.url_of("tree"), TREE)
        assert names(site.folder / "tree") == []


def test_a_name_that_is_cut_off_keeps_no_others_back(here: Path, web_servers: SharedServers) -> None:
    """Of those that pass through this host, several at once."""
    kept = [f"{number}" for number in range(9)]
    for name in (*kept, "4?x"):
        make(here / "tree" / name, 1000)
    options = api.CopyOptions(recursive=True, checksum="none", in_place=True)
    with web_servers.site("xrootd") as site, own_site(here) as source:
        with pytest.raises(PartialFailure, match="ends before the"):
            api.copy(source.url_of("tree"), site.url_of("tree"), options)
        (here / "tree/4?x").unlink()
        assert contents(site.folder / "tree") == contents(here / "tree")


def test_bytes_that_are_no_utf_8(web_site: Site, here: Path) -> None:
    name = os.fsdecode(b"caf\xe9 \xff")
    make(here / name, 1000)
    if not web_site.stores_any_bytes:
        with pytest.raises(api.MpxError):
            api.copy(str(here / name), web_site.url_of(name), api.CopyOptions(retries=0))
        return
    api.copy(str(here / name), web_site.url_of(name))
    assert (web_site.folder / name).read_bytes() == (here / name).read_bytes()
    api.copy(web_site.url_of(name), str(here / "down"))
    assert (here / "down").read_bytes() == (here / name).read_bytes()


@pytest.mark.parametrize("age_s", [0, 1_000_000], ids=["new", "old"])
def test_times_are_not_said_to_be_lost_where_they_are_kept(
    age_s: int, here: Path, web_servers: SharedServers
) -> None:
    """A new file has about its time anyway, so that it does not show whether the server gives it."""
    source = make(here / "tree/file", 10)
    os.utime(source, (time.time() - age_s, time.time() - age_s))
    with web_servers.site("nginx") as site:
        report = api.copy(str(here / "tree"), site.url_of("tree"), TREE)
        there = (site.folder / "tree/file").stat()
    assert abs(there.st_mtime - source.stat().st_mtime) < 60
    said = [str(note) for note in report.notes if "modification times" in str(note)]
    assert said == [str(FOLDER_TIMES)]


def test_a_file_replaces_another_and_never_a_folder(web_site: Site, here: Path) -> None:
    make(here / "file", 5000)
    web_site.write("there", b"old")
    web_site.write("file/kept", b"kept")
    api.copy(str(here / "file"), web_site.url_of("there"))
    assert (web_site.folder / "there").read_bytes() == (here / "file").read_bytes()
    with pytest.raises(api.MpxError):
        api.copy(str(here / "file"), web_site.url, api.CopyOptions(overwrite="always"))
    assert (web_site.folder / "file/kept").read_bytes() == b"kept"
    assert partials(web_site.folder) == []


def test_a_list_of_files(archive: Site, here: Path) -> None:
    wanted = [f"sub/{i} of them" for i in range(30)]
    for name in wanted:
        make(archive.folder / name, 10)
    make(archive.folder / "sub/other", 10)
    (here / "list").write_text("\n".join(map(archive.url_of, wanted)) + "\n")
    copied(mpx("copy", "-q", "--from-file", here / "list", f"{here}/down/"))
    brought = {f"sub/{name}": content for name, content in contents(here / "down").items()}
    assert brought == {name: (archive.folder / name).read_bytes() for name in wanted}


def test_a_folder_is_listed(web_site: Site) -> None:
    web_site.write("b file", b"12345")
    web_site.write("a folder/file")
    os.utime(web_site.folder / "b file", (1e9, 1e9))
    plain = mpx_there("list", web_site.url)
    assert (plain.code, plain.out, plain.err) == (0, "a folder/\nb file\n", "")
    long = mpx_there("list", "-l", web_site.url)
    folder, file = long.out.splitlines()
    assert file.split() == ["file", "----", "5", "2001-09-09", "01:46:40Z", "b", "file"]
    assert folder.split()[0] == "folder"
    one = mpx_there("list", "-l", web_site.url_of("b file"))
    assert one.out.splitlines() == [file]


def test_a_file_of_an_archive_is_listed_and_a_folder_is_not(archive: Site) -> None:
    archive.write("sub/file", b"12345")
    told = mpx("list", "-l", archive.url_of("sub/file"))
    assert (told.code, told.out.split()[:3]) == (0, ["file", "----", "5"])
    for name in ("sub", "sub/"):
        refused(mpx("list", archive.url_of(name)), 3, "does not list folders", "--from-file")
        with pytest.raises(SourceError, match="does not list folders"):
            api.copy(archive.url_of(name), str(archive.folder.parent / "never"), TREE)
        assert not (archive.folder.parent / "never").exists()
        with pytest.raises(SourceError, match="does not list folders"):  # so that -r is of no use
            api.copy(archive.url_of(name), str(archive.folder.parent / "never"))


@pytest.mark.parametrize("settings", ["", "autoindex on;"])
def test_a_page_about_a_folder_is_no_file(settings: str, tmp_path: Path) -> None:
    make(tmp_path / "served/sub/file", 5)
    make(tmp_path / "served/with a page/index.html", 100)
    with nginx_site(tmp_path / "served", dav=False, settings=settings) as archive:
        for name in ("", "sub/", "with%20a%20page/"):
            refused(mpx("list", "-l", archive.url + name), 3, "does not list folders", "--from-file")
            with pytest.raises(SourceError, match="does not list folders"):
                api.copy(archive.url + name, str(tmp_path / "never"), TREE)
            assert names(tmp_path / "never") == []
        one = api.copy(f"{archive.url}with%20a%20page/?of=a%20file", str(tmp_path / "down"))
    assert one.files.moved == 1


def test_a_dry_run_changes_nothing(web_site: Site, here: Path) -> None:
    make(here / "tree/sub/file", 10)
    told: list[str] = []
    options = api.CopyOptions(recursive=True, dry_run=True)
    api.copy(str(here / "tree"), web_site.url_of("up"), options, on_rehearsed=told.append)
    assert any("sub/file" in line for line in told)
    assert names(web_site.folder) == []
    web_site.write("down/file")
    told.clear()
    api.copy(web_site.url_of("down"), str(here / "down"), options, on_rehearsed=told.append)
    assert any("down/file" in line for line in told)
    assert not (here / "down").exists()
