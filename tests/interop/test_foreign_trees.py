"""Trees from servers that people run: links however shown, hidden files, folders within themselves."""

import os
from pathlib import Path

import pytest
from interop.foreign_servers import ForeignServer, ProFtpd, PureFtpd, PyFtpdLib
from interop.trees import TREE, failures, names, readable, skips
from mpx_command import copied, mpx, refused
from sites import AWKWARD, make, stock_site

import mpx as api
from mpx.report import Skip

pytestmark = pytest.mark.peers


def same(one: Path, other: Path, *files: str) -> None:
    for name in files:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


def test_links_are_followed(foreign: ForeignServer, tmp_path: Path) -> None:
    root = foreign.root
    make(root / "d/real/f", 10_000)
    (root / "d/to file").symlink_to("real/f")
    (root / "d/to folder").symlink_to("real")
    (root / "d/real/up").symlink_to("..")
    (root / "d/.hidden").write_bytes(b"h")
    readable(root)
    report = api.copy(foreign.url + "d", str(tmp_path / "down"), TREE)
    expected = [".hidden", "real/", "real/f", "to file", "to folder/", "to folder/f"]
    assert names(tmp_path / "down") == expected
    same(root / "d", tmp_path / "down", ".hidden", "real/f", "to file", "to folder/f")
    assert set(skips(report)) == {"up"}
    assert skips(report)["up"] in (Skip.LINK_TO_ABOVE, Skip.CONTAINS_ITSELF)


@pytest.mark.parametrize("server", [ProFtpd, PureFtpd])
def test_links_that_lead_nowhere_do_not_stop_the_rest(
    server: type[ForeignServer], tmp_path: Path, with_password: None
) -> None:
    root = tmp_path / "ftp"
    make(root / "d/f", 10)
    (root / "d/dangling").symlink_to("nowhere")
    readable(root)
    with server(root) as running:
        api.copy(running.url + "d", str(tmp_path / "down"), TREE)
    same(root / "d", tmp_path / "down", "f")


@pytest.mark.parametrize("server", [ProFtpd, PureFtpd])
def test_links_whose_target_is_not_told_cannot_be_kept(
    server: type[ForeignServer], tmp_path: Path, with_password: None
) -> None:
    root = tmp_path / "ftp"
    make(root / "d/f", 10)
    (root / "d/link").symlink_to("f")
    readable(root)
    with server(root) as running, pytest.raises(api.PartialFailure) as caught:
        api.copy(running.url + "d", str(tmp_path / "down"), api.CopyOptions(recursive=True, links="keep"))
    assert set(failures(caught)) == {"link"}
    same(root / "d", tmp_path / "down", "f")


@pytest.mark.parametrize("server", [ProFtpd, PureFtpd])
@pytest.mark.parametrize("name", ["to file", "to folder"])
def test_a_link_named_by_the_user_is_not_followed_unasked(
    server: type[ForeignServer], name: str, tmp_path: Path, with_password: None
) -> None:
    """Of which MLST, SIZE and CWD tell what it leads to."""
    root = tmp_path / "ftp"
    make(root / "d/real/f", 10)
    (root / "d/to file").symlink_to("real/f")
    (root / "d/to folder").symlink_to("real")
    readable(root)
    with server(root) as running:
        source = f"{running.url}d/{name.replace(' ', '%20')}"
        down = tmp_path / "down"
        refused(mpx("copy", "-r", "--links", "keep", source, down), 3, "does not say where", "--links follow")
        skipped = mpx("copy", "-r", "--links", "skip", source, down)
        assert "a symbolic link" in skipped.out and not down.exists(), skipped
        copied(mpx("copy", "-r", "--links", "keep", f"{running.url}d/real/f", tmp_path / "file"))
        copied(mpx("copy", "-r", source, down))
        arrived = down if name == "to file" else down / "f"
        assert arrived.read_bytes() == (root / "d/real/f").read_bytes()


def test_proftpd_that_names_targets(tmp_path: Path, with_password: None) -> None:
    root = tmp_path / "ftp"
    make(root / "d/real/f", 10)
    (root / "d/to folder").symlink_to("real")
    (root / "d/to file").symlink_to("real/f")
    readable(root)
    with ProFtpd(root, "FactsOptions UseSlink") as running:
        api.copy(running.url + "d", str(tmp_path / "down"), TREE)
    same(root / "d", tmp_path / "down", "real/f", "to folder/f", "to file")


def test_a_link_to_what_holds_the_source(tmp_path: Path, with_password: None) -> None:
    root = tmp_path / "ftp"
    make(root / "d/f", 5)
    make(root / "d/sub/inner", 5)
    (root / "d/sub/up").symlink_to("..")
    readable(root)
    with PyFtpdLib(root) as running:  # which shows no links; what is the same folder, `unique` tells
        for source, expected in (("d", ["f", "sub/", "sub/inner"]), ("d/sub", ["inner"])):
            there = tmp_path / source.replace("/", " ")
            report = api.copy(f"{running.url}{source}", str(there), TREE)
            assert set(skips(report)) == {"up"}
            assert names(there) == expected


def test_a_file_that_the_server_stores_under_another_name(pureftpd: ForeignServer, tmp_path: Path) -> None:
    """As Pure-FTPD does with blanks at the end: nothing was lost on the way."""
    for name in ("trail ", "other"):
        make(tmp_path / "up" / name, 1)
    ended = mpx("copy", "-r", "--in-place", tmp_path / "up", pureftpd.url + "up")
    refused(ended, 10, "1 of 2 files were not copied; copied 1 of 2 files")
    first = ended.err.splitlines()[0]
    assert f"not copied {tmp_path}/up/trail : /up/trail  is not at the destination" in first
    assert "under another name" in first and "loses data" not in first


def test_what_a_server_calls_unknown_has_failed(pureftpd: ForeignServer, tmp_path: Path) -> None:
    root = pureftpd.root
    make(root / "d/f", 10)
    readable(root)
    os.mkfifo(root / "d/fifo", 0o644)
    ended = mpx("copy", "-r", "--timeout", "5s", "--retries", "1", pureftpd.url + "d", tmp_path / "down")
    assert ended.code == 10, ended.err
    assert "fifo" in ended.err
    same(root / "d", tmp_path / "down", "f")


@pytest.mark.parametrize("kind", [ProFtpd, PureFtpd])
def test_a_folder_that_cannot_be_entered(
    kind: type[ForeignServer], tmp_path: Path, with_password: None
) -> None:
    (tmp_path / "ftp").mkdir()
    with kind(tmp_path / "ftp") as server:
        closed_folder(server.url + "d", server.root / "d", tmp_path / "down")


def test_a_folder_that_cannot_be_entered_at_vsftpd(vsftpd: tuple[str, Path], tmp_path: Path) -> None:
    closed_folder(f"{vsftpd[0]}/d", vsftpd[1] / "d", tmp_path / "down")


def test_a_folder_that_cannot_be_entered_at_globus(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("the server works as we do, whom it may not show what is closed")
    (tmp_path / "served").mkdir()
    with stock_site(tmp_path / "served") as site:
        closed_folder(site.url_of("d"), site.folder / "d", tmp_path / "down")


def closed_folder(url: str, there: Path, here: Path) -> None:
    """Of three folders one lets the server in, but not list, one neither, and the third has a closed file."""
    for name in ("a/file", "closed/file", "unlisted/file", "z/file", "z/closed"):
        make(there / name, 10)
    readable(there)
    (there / "closed").chmod(0)
    (there / "unlisted").chmod(0o711)
    (there / "z/closed").chmod(0)
    ended = mpx("copy", "-r", "--timeout", "5s", "--retries", "1", url, here)
    assert ended.code == 10, ended.err
    for name in ("closed", "unlisted", "z/closed"):
        assert f"d/{name}: " in ended.err, ended.err
    assert "3 of 5 files were not copied" in ended.err
    same(there, here, "a/file", "z/file")


# --- vsftpd, which has LIST only -----------------------------------------------------------------------


def test_a_tree_from_vsftpd(vsftpd: tuple[str, Path], tmp_path: Path) -> None:
    url, served = vsftpd
    for name in AWKWARD:
        make(served / "d" / name, len(name))
    make(served / "d/sub dir/*?[x]/file", 20_000)
    (served / "d/.hidden").write_bytes(b"h")
    (served / "d/empty").mkdir()
    (served / "d/to file").symlink_to("sub dir/*?[x]/file")
    (served / "d/to folder").symlink_to("sub dir")
    (served / "d/sub dir/up").symlink_to("..")
    (served / "d/nowhere").symlink_to("none")
    (served / "d/read only").mkdir(mode=0o555)
    readable(served)
    for _ in range(2):
        report = api.copy(f"{url}/d", str(tmp_path / "down"), TREE)
    files = [*AWKWARD, "sub dir/*?[x]/file", ".hidden", "to file", "to folder/*?[x]/file"]
    same(served / "d", tmp_path / "down", *files)
    assert (tmp_path / "down/empty").is_dir()
    assert {name for name, why in skips(report).items() if why != Skip.SAME} == {"up", "nowhere"}
    assert report.files.moved == 0  # the second run has nothing to do, as MDTM tells the times
    assert any("has no MLSD" in note and "copied again" in note for note in report.notes)
    assert (tmp_path / "down/.hidden").stat().st_mtime == int((served / "d/.hidden").stat().st_mtime)


def test_vsftpd_listed(vsftpd: tuple[str, Path]) -> None:
    url, served = vsftpd
    for name in [*AWKWARD, ".hidden"]:
        make(served / name, 3)
    (served / "sub").mkdir()
    ended = mpx("list", url)
    copied(ended)
    assert sorted(ended.out.splitlines()) == sorted([*AWKWARD, ".hidden", "sub/"])
    long = mpx("list", "-l", url)
    assert long.code == 0
    assert "has no MLSD" in long.err and "copied again" not in long.err  # nothing is copied
    assert (
        sum(line.startswith("file    0644               3 20") for line in long.out.splitlines())
        == len(AWKWARD) + 1
    )


def test_a_link_named_by_the_user_at_vsftpd(vsftpd: tuple[str, Path], tmp_path: Path) -> None:
    url, served = vsftpd
    make(served / "f", 3)
    (served / "link").symlink_to("f")
    copied(mpx("copy", "--links", "keep", f"{url}/link", f"{url}/f", f"{tmp_path}/"))
    assert (tmp_path / "link").readlink() == Path("f")
    same(served, tmp_path, "f")
