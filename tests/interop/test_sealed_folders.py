"""Read-only folders: sealed when all in them is copied, opened again by a run that has more to bring."""

import os
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from interop.foreign_servers import ForeignServer, ProFtpd, PureFtpd
from interop.trees import T0, TREE, failures, names
from mpx_command import AS_ANYBODY, command, copied, mpx
from sites import SITES, Site, make

import mpx as api
from mpx.serve import Server
from mpx.transfer import scan, spool
from mpx.transfer.destination_folders import LEFT_OPEN

pytestmark = pytest.mark.peers

ORDINARY = AS_ANYBODY if os.geteuid() == 0 else []


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@contextmanager
def sealed(*folders: Path, mode: int = 0o555) -> Iterator[None]:
    for folder in folders:
        folder.chmod(mode)
    yield
    for folder in folders:
        folder.chmod(0o755)


@pytest.mark.parametrize("mode", [0o555, 0o500, 0o111])
def test_a_folder_is_sealed_when_all_of_it_is_there(here: Path, mode: int) -> None:
    """Within this host, as somebody whom modes hinder."""
    make(here / "src/sub/ok", 5)
    make(here / "src/sub/deep/inner", 6)
    make(here / "src/other/file", 7)
    make(here / "src/sub/deep/closed", 8).chmod(0)
    # The source is listed and read all the same: its folders get this mode only at the destination.
    (here / "src/sub").chmod(0o555)
    (here / "src/other").chmod(0o555)
    ended = mpx("copy", "-v", "-r", here / "src", here / "dst", ordinary=True)
    assert ended.code == 10, ended.err
    assert LEFT_OPEN in ended.out + ended.err
    assert mode_of(here / "dst/sub") == 0o755  # something below it is missing
    assert mode_of(here / "dst/other") == 0o555
    (here / "dst/other").chmod(mode)
    (here / "src/sub/deep/closed").chmod(0o644)
    with sealed(here / "src/other", mode=0o755):
        make(here / "src/other/added/deep/file", 9)
    (here / "src/other").chmod(0o555)
    ended = mpx("copy", "-v", "-r", here / "src", here / "dst", ordinary=True)
    assert (ended.code, ended.err) == (0, ""), ended.err
    assert LEFT_OPEN not in ended.out
    assert names(here / "dst") == names(here / "src")
    assert mode_of(here / "dst/sub") == mode_of(here / "dst/other") == 0o555


def test_links_and_folders_that_wait_on_disk(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "BLOCK", 2)
    for i in range(7):
        make(here / f"src/a{i}/b/file", 5)
        (here / f"src/a{i}/b/link").symlink_to("file")
        os.utime(here / f"src/a{i}/b", (T0 + i, T0 + i))
        (here / f"src/a{i}/b").chmod(0o555)
    report = api.copy(str(here / "src"), str(here / "dst"), api.CopyOptions(recursive=True, links="keep"))
    assert report.files.moved == 14
    assert names(here / "dst") == names(here / "src")
    for i in range(7):
        folder = here / f"dst/a{i}/b"
        assert (mode_of(folder), folder.stat().st_mtime) == (0o555, T0 + i)
        assert os.readlink(folder / "link") == "file"


def test_more_links_than_can_be_kept(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "MOST_LINKS", 2)
    for i in range(4):
        make(here / f"src/file{i}", 5)
        (here / f"src/link{i}").symlink_to("file")
    with pytest.raises(api.PartialFailure) as caught:
        api.copy(str(here / "src"), str(here / "dst"), api.CopyOptions(recursive=True, links="keep"))
    assert len(failures(caught)) == 2
    assert all("more than 2 links" in why for why in failures(caught).values())
    assert len(os.listdir(here / "dst")) == 6


def test_folders_within_sealed_folders(here: Path) -> None:
    make(here / "src/a/b/c/file", 5)
    folders = [here / "src/a/b/c", here / "src/a/b", here / "src/a", here / "src"]
    for folder in folders:
        folder.chmod(0o555)
    copied(mpx("copy", "-q", "-r", here / "src", here / "dst", ordinary=True))
    with sealed(*reversed(folders), mode=0o755):
        make(here / "src/a/b/c/new/file", 6)
    for folder in folders:
        folder.chmod(0o555)
    copied(mpx("copy", "-q", "-r", here / "src", here / "dst", ordinary=True))
    assert names(here / "dst") == names(here / "src")
    for folder in folders:
        assert mode_of(here / "dst" / folder.relative_to(here / "src")) == 0o555


@pytest.mark.parametrize("site", ["local", "stock server", "mpx serve"])
def test_a_run_killed_in_the_middle_of_sealed_folders(site: str, tmp_path: Path, eventually) -> None:
    """Twice: into folders that it makes, and into folders that an earlier copy has sealed."""
    source = tmp_path / "src"
    for name in ("a", "a/b", "a/b/c", "z"):
        make(source / name / "small", 5)
    read_only = [source / name for name in ("a/b/c", "a/b", "a", "z")]
    (tmp_path / "served").mkdir()
    with SITES[site](tmp_path / "served") as there:
        dst = there.folder / "dst"

        def copy_and_kill(*large: str) -> None:
            for folder in reversed(read_only):
                folder.chmod(0o755)
            for name in large:
                make(source / name, 3_000_000)
            for folder in read_only:
                folder.chmod(0o555)
            words = [*ORDINARY, *command("copy", "-r", "--rate", "8Mbit/s", source, there.url_of("dst"))]
            with subprocess.Popen(words, stderr=subprocess.PIPE) as process:
                eventually(lambda: list(dst.rglob("*.part")) or process.poll() is not None)
                assert process.poll() is None, process.communicate()
                process.kill()

        for large in (("a/b/c/large", "z/large"), ("a/b/more", "z/more", "a/new/deep/file")):
            copy_and_kill(*large)
            copied(mpx("copy", "-q", "-r", source, there.url_of("dst"), ordinary=True))
            assert names(dst) == names(source)
            for path in source.rglob("*"):
                copy = dst / path.relative_to(source)
                assert mode_of(copy) == mode_of(path), path
                assert path.is_dir() or copy.read_bytes() == path.read_bytes()


def test_sealed_folders_at_a_server(far: Site, here: Path) -> None:
    """A stock server works as an account that modes hinder."""
    sealed_at(far.url_of("dst"), far.folder / "dst", here)


@pytest.mark.parametrize("kind", [ProFtpd, PureFtpd])
def test_sealed_folders_at_foreign_servers(
    kind: type[ForeignServer], here: Path, tmp_path: Path, with_password: None
) -> None:
    root = tmp_path / "ftp"
    root.mkdir()
    with kind(root) as server:
        sealed_at(server.url + "dst", root / "dst", here)


def sealed_at(url: str, there: Path, here: Path) -> None:
    make(here / "src/sub/ok", 5)
    make(here / "src/sub/grows", 0)
    (here / "src/sub").chmod(0o555)
    (here / "src/sub/grows").chmod(0)
    ended = mpx("copy", "-r", here / "src", url, ordinary=True)
    assert ended.code == 10, ended.err
    assert mode_of(there / "sub") == 0o755
    (here / "src/sub/grows").chmod(0o644)
    api.copy(str(here / "src"), url, TREE)
    assert mode_of(there / "sub") == 0o555
    (here / "src/sub").chmod(0o755)
    make(here / "src/sub/added/file", 3)
    (here / "src/sub").chmod(0o555)
    api.copy(str(here / "src"), url, TREE)
    assert names(there) == names(here / "src")
    assert mode_of(there / "sub") == 0o555
    assert (there / "sub/added/file").read_bytes() == (here / "src/sub/added/file").read_bytes()


def test_a_folder_of_somebody_else_is_not_opened(here: Path) -> None:
    if os.geteuid() != 0 or not AS_ANYBODY:
        pytest.skip("gives a folder to another account, as root")
    make(here / "src/sub/file", 3)
    (here / "dst/sub").mkdir(parents=True)
    (here / "dst/sub").chmod(0o555)
    os.chown(here / "dst/sub", 65534, -1)
    ended = mpx("copy", "-r", here / "src", here / "dst", ordinary=True)
    assert ended.code == 4, ended.err
    assert not list((here / "dst/sub").iterdir())


@pytest.mark.parametrize("at_server", [False, True])
def test_a_folder_keeps_the_group_of_its_site(here: Path, *, at_server: bool) -> None:
    """Below a folder that gives its group to what is made in it, and in one where only owners remove."""
    make(here / "src/sub/file", 5)
    for folder in (here / "src", here / "src/sub"):
        folder.chmod(0o750)
    (here / "shared").mkdir()
    (here / "shared").chmod(0o3775)
    with Server(here, writable=True) as server:
        target = f"{server.url}shared" if at_server else here / "shared"
        for _ in range(2):
            copied(mpx("copy", "-r", here / "src", target))
            assert mode_of(here / "shared/sub") == 0o2750
            assert mode_of(here / "shared") == 0o3750


def test_a_umask_that_takes_everything_away(here: Path) -> None:
    """From its owner, too: of folders for what is copied, and of those in which mpx remembers."""
    make(here / "src/sub/file", 5)
    state = here / "new/state"
    masked = ["bash", "-c", 'umask 777; exec "$@"', "bash"]
    for _ in range(2):
        ended = subprocess.run(
            [*ORDINARY, *masked, *command("copy", "-q", "-r", here / "src", here / "dst")],
            env={**os.environ, "MPX_STATE_DIR": str(state)},
            capture_output=True,
            check=False,
        )
        assert (ended.returncode, ended.stderr) == (0, b""), ended
    assert names(here / "dst") == names(here / "src")
    assert mode_of(state) == 0o700
