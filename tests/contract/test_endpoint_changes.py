"""What every endpoint must do, whatever it talks to: folders, links, and giving files their final names."""

import os

import pytest
from sites import Site

from mpx.engine.capabilities import Question
from mpx.engine.endpoint import Commit, Endpoint, Stamp
from mpx.errors import DestinationError, MpxError

MODIFIED_S = 1_234_567_890


@pytest.fixture
def site(changed: Site) -> Site:
    return changed


def untold(line: str) -> None:
    """Take a note where there is none to be made."""
    pytest.fail(f"told: {line}")


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
    if not site.follows_links:
        with pytest.raises(DestinationError, match="link"):
            made(end, site.name("link"))
        return
    made(end, site.name("link"))
    made(end, site.name("link/below"))
    assert (site.folder / "real/below").is_dir()


def test_can_link(site: Site, end: Endpoint) -> None:
    assert end.find_out(Question.LINKS).links == (site.links != "none")


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
    end.remove(site.name("no folder/file"))
    if site.follows_links:
        end.remove(site.name("link"))
        assert not (site.folder / "link").is_symlink()
    assert {path.name for path in site.folder.iterdir()} - {"link"} == {"kept"}


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
    told: list[str] = []
    assert list(end.commit([commit], told.append)) == [None]
    assert any("times" in line for line in told) != site.keeps_times
    assert any("modes" in line for line in told) != site.keeps_modes
    status = (site.folder / "a b").stat()
    if site.keeps_times:
        assert status.st_mtime == (MODIFIED_S + 0.75 if site.keeps_fractions else MODIFIED_S)
    if site.keeps_modes:
        assert status.st_mode & 0o7777 == 0o640
    assert end.find_out().keeps_times == site.keeps_times
    assert not (site.folder / "a b.part").exists()


def test_commit_drops_set_user_id_bits(site: Site, end: Endpoint) -> None:
    end.commit([commit_of(site, "a", mode=0o6755)], lambda _: None)
    mode = (site.folder / "a").stat().st_mode & 0o7777
    assert mode == 0o755 if site.keeps_modes else not mode & 0o7000


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
    (error,) = end.commit([commit_of(site, "a", b"new")], untold)
    assert (error is None) if site.replaces_links else isinstance(error, DestinationError)
    assert (site.folder / "real").read_bytes() == b"real"
    assert (site.folder / "a").is_symlink() != site.replaces_links


def test_commit_of_a_group(site: Site, end: Endpoint) -> None:
    files = [commit_of(site, f"{i}", str(i).encode(), modified_s=i, mode=0o600 + i % 8) for i in range(300)]
    assert list(end.commit(files, lambda _: None)) == [None] * 300
    for i in range(300):
        path = site.folder / str(i)
        assert path.read_bytes() == str(i).encode()
        assert not site.keeps_times or path.stat().st_mtime == i
        assert not site.keeps_modes or path.stat().st_mode & 0o777 == 0o600 + i % 8


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
    assert (results[0] is None) if site.makes_parents else isinstance(results[0], DestinationError)


def test_set_times_of_a_folder(site: Site, end: Endpoint) -> None:
    site.write("sub/file")
    if not site.keeps_times:
        notes: list[str] = []
        end.set_times([Stamp(site.name("sub"), MODIFIED_S, 0o750)], notes.append)
        assert len(notes) == 2
        assert "modes" in notes[0]
        assert "times" in notes[1]
        return
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
