"""Names cannot leave the served directory: not by `..`, not by links, not by a race."""

import errno
import os
import stat
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.serve import beneath
from mpx.serve.root import Root, join

SECRET = b"not to be served"


@pytest.fixture
def tree(tmp_path: Path):
    (tmp_path / "secret").write_bytes(SECRET)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_bytes(SECRET)
    inside = tmp_path / "inside"
    (inside / "a" / "b").mkdir(parents=True)
    (inside / "a" / "b" / "file").write_bytes(b"content")
    return inside


@pytest.fixture(params=[False, True], ids=["name by name", "in one call"])
def root(tree: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch):
    if request.param and not beneath.IS_HAD:
        pytest.skip("this kernel does not walk for us")
    monkeypatch.setattr(beneath, "IS_HAD", request.param)
    root = Root(tree)
    yield root
    root.close()


def read(root: Root, path: str) -> bytes:
    fd = root.open_file(path)
    try:
        return os.read(fd, 100)
    finally:
        os.close(fd)


@pytest.mark.parametrize(
    ("directory", "name", "expected"),
    [
        ("/", "a", "/a"),
        ("/a/b", "../c", "/a/c"),
        ("/a", "../../../../etc/passwd", "/etc/passwd"),
        ("/a", "/../x", "/x"),
        ("/a", "//x//y/", "/x/y"),
        ("/a", ".", "/a"),
        ("/a", "~/x", "/x"),
        ("/a", "/~/x", "/x"),
        ("/a", "~", "/"),
        ("/a", "~x", "/a/~x"),
        ("/a", " x ", "/a/ x "),
    ],
)
def test_names_are_made_absolute_within_the_tree(directory, name, expected):
    assert join(directory, name) == expected


@given(st.text(alphabet="./~ab", max_size=20), st.text(alphabet="./~ab", max_size=20))
def test_joined_names_are_absolute_and_without_dots(first, second):
    path = join(join("/", first or "."), second or ".")
    assert path.startswith("/")
    assert not path.startswith("//")
    assert not {".", ".."} & set(path.split("/"))


def test_plain_names(root, tree):
    assert read(root, "/a/b/file") == b"content"
    assert stat.S_ISDIR(root.stat("/").st_mode)
    assert stat.S_ISDIR(root.stat("/a/b").st_mode)
    with pytest.raises(FileNotFoundError):
        root.stat("/a/none")
    with pytest.raises(NotADirectoryError):
        root.stat("/a/b/file/x")


def test_even_unnormalised_dots_do_not_lead_out(root):
    for path in ("/../secret", "/a/../../secret", "/a/b/../../../outside/secret"):
        with pytest.raises(OSError, match="leads out"):
            root.open_file(path)


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("a/link", "../../secret"),
        ("a/link", "b/../../../secret"),
        ("link", "a/../../secret"),
        ("link", "a/b/../../../outside/secret"),
        ("link", "../inside/a/b/file"),  # it would come back in, but only by leaving first
    ],
)
def test_links_that_climb_out_are_not_followed(root, tree, link, target):
    (tree / link).symlink_to(target)
    for act in (
        root.open_file,
        root.stat,
        lambda path: root.open_for_writing(path, create=True, truncate=True),
        lambda path: root.set_mode(path, 0o777),
        lambda path: root.set_times(path, 0, 0),
        lambda path: root.shrink(path, 0),
    ):
        with pytest.raises(OSError, match="leads out"):
            act(f"/{link}")
    assert (tree.parent / "secret").read_bytes() == SECRET
    assert (tree.parent / "outside" / "secret").read_bytes() == SECRET


def test_links_to_directories_outside_are_not_entered(root, tree):
    (tree / "up").symlink_to("../outside")
    (tree / "absolute").symlink_to(tree.parent / "outside")
    (tree / "home").symlink_to(tree)
    for name in ("up", "absolute", "home"):
        for act in (
            lambda name: root.open_file(f"/{name}/secret"),
            lambda name: root.open_directory(f"/{name}"),
            lambda name: root.make_directory(f"/{name}/new"),
            lambda name: root.remove_file(f"/{name}/secret"),
            lambda name: root.rename(f"/{name}/secret", "/got"),
            lambda name: root.rename("/a", f"/{name}/gone"),
            lambda name: root.open_for_writing(f"/{name}/new", create=True, truncate=False),
        ):
            with pytest.raises(PermissionError):
                act(name)
    assert sorted(path.name for path in (tree.parent / "outside").iterdir()) == ["secret"]


def test_relative_links_inside_are_followed(root, tree):
    (tree / "latest").symlink_to("a/b")
    (tree / "a" / "up").symlink_to("..")
    (tree / "a" / "b" / "again").symlink_to("../../latest/./file")
    (tree / "a" / "self").symlink_to(".")
    assert read(root, "/latest/file") == b"content"
    assert read(root, "/a/up/a/up/latest/file") == b"content"
    assert read(root, "/a/b/again") == b"content"
    assert read(root, "/a/self/self/b/file") == b"content"
    os.close(root.open_for_writing("/latest/new", create=True, truncate=True))
    assert (tree / "a" / "b" / "new").exists()


def test_a_dangling_link_inside_is_where_a_new_file_goes(root, tree):
    (tree / "link").symlink_to("a/new")
    os.close(root.open_for_writing("/link", create=True, truncate=True))
    assert (tree / "a" / "new").exists()
    assert (tree / "link").is_symlink()


def test_links_in_a_circle_end(root, tree):
    (tree / "x").symlink_to("y")
    (tree / "y").symlink_to("x")
    with pytest.raises(OSError, match=os.strerror(errno.ELOOP)):
        root.open_file("/x")


def test_links_are_removed_and_renamed_themselves(root, tree):
    (tree / "link").symlink_to("a/b/file")
    root.rename("/link", "/moved")
    assert (tree / "moved").is_symlink()
    root.remove_file("/moved")
    assert not (tree / "moved").is_symlink()
    assert (tree / "a" / "b" / "file").read_bytes() == b"content"


def test_what_is_not_a_file_is_not_opened(root, tree):
    os.mkfifo(tree / "fifo")
    for name in ("/fifo", "/a"):
        with pytest.raises(OSError, match=r"Not a regular file|Is a directory"):
            root.open_file(name)
        with pytest.raises(OSError, match=r"Not a regular file|Is a directory"):
            root.open_for_writing(name, create=True, truncate=True)


def test_a_fifo_that_comes_after_the_look_neither_blocks_nor_opens(root, tree, monkeypatch):
    os.mkfifo(tree / "fifo")
    regular = (tree / "a" / "b" / "file").stat()
    monkeypatch.setattr("mpx.serve.root.os.stat", lambda *_, **__: regular)
    with pytest.raises(PermissionError, match="Not a regular file"):
        root.open_file("/fifo")


def test_what_becomes_a_link_after_the_look_is_not_followed(root, tree, monkeypatch):
    (tree / "directory").symlink_to("../outside")
    (tree / "name").symlink_to("../secret")
    regular = (tree / "a" / "b" / "file").stat()
    monkeypatch.setattr("mpx.serve.root._link_target", lambda *_: None)
    with pytest.raises(NotADirectoryError):
        root.stat("/directory/secret")
    with pytest.raises(NotADirectoryError):
        root.open_directory("/directory")
    for act in (root.stat, lambda path: root.set_mode(path, 0o777)):
        with pytest.raises(OSError, match=os.strerror(errno.ELOOP)):
            act("/name")
    root.set_times("/name", 1, 1)  # of the link itself
    monkeypatch.setattr("mpx.serve.root.os.stat", lambda *_, **__: regular)
    with pytest.raises(OSError, match=os.strerror(errno.ELOOP)):
        root.open_file("/name")
    with pytest.raises(OSError, match=os.strerror(errno.ELOOP)):
        root.open_for_writing("/name", create=True, truncate=True)
    monkeypatch.undo()
    assert (tree.parent / "secret").read_bytes() == SECRET
    assert (tree.parent / "secret").stat().st_mtime > 1


def test_the_root_itself_stays(root, tree):
    for act in (
        lambda: root.remove_directory("/"),
        lambda: root.rename("/", "/a/x"),
        lambda: root.remove_file("/"),
        lambda: root.make_directory("/"),
        lambda: root.rename("/a", "/"),
    ):
        with pytest.raises(OSError, match=r"\[Errno"):
            act()
    assert (tree / "a" / "b" / "file").exists()


def test_long_names_are_refused(root):
    with pytest.raises(OSError, match="too long"):
        root.stat("/" + "x" * 300)
    with pytest.raises(OSError, match="too long"):
        root.stat("/x" * 3000)


def test_a_directory_swapped_for_a_link_at_the_wrong_moment_leads_nowhere(root, tree):
    """A directory turns into a link to outside and back, as fast as it can, while it is walked."""
    (tree / "swap").mkdir()
    (tree / "swap" / "secret").write_bytes(b"inside")
    (tree / "evil").symlink_to("../outside")
    stop = threading.Event()

    def swap():
        while not stop.is_set():
            (tree / "swap").rename(tree / "kept")
            (tree / "evil").rename(tree / "swap")
            (tree / "swap").rename(tree / "evil")
            (tree / "kept").rename(tree / "swap")

    thread = threading.Thread(target=swap)
    thread.start()
    seen, refused = set(), 0
    try:
        for turn in range(1_000_000):
            if turn > 2000 and refused:
                break
            try:
                seen.add(read(root, "/swap/secret"))
            except OSError:
                refused += 1
    finally:
        stop.set()
        thread.join()
    assert seen <= {b"inside"}
    assert refused  # the race was on


def test_no_descriptor_is_left_open(root, tree):
    (tree / "link").symlink_to("a/../../secret")
    before = len(os.listdir("/proc/self/fd"))
    for path in ("/a/b/file", "/link", "/none/x", "/a"):
        with suppress(OSError):
            os.close(root.open_file(path))
    assert len(os.listdir("/proc/self/fd")) == before


DEEP = 400


@pytest.fixture
def deep(tree: Path):
    """Folders in each other; at their end `up` leads back to `a`, and `link` at the start to them."""
    fd = os.open(tree, os.O_RDONLY)
    for _ in range(DEEP):
        os.mkdir("d", dir_fd=fd)
        inner = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = inner
    os.symlink("../" * DEEP + "a", "up", dir_fd=fd)
    os.close(fd)
    (tree / "link").symlink_to("d")
    return "/d" * DEEP


def test_folders_in_folders_without_end(root, deep):
    root.make_directory(f"{deep}/new")
    root.rename(f"{deep}/new", f"/link{deep[2:]}/newer")
    assert stat.S_ISDIR(root.stat(f"{deep}/newer").st_mode)
    with pytest.raises(OSError, match="symbolic links"):  # it climbs more often than any walk may
        root.stat(f"{deep}/up/b")
    with pytest.raises(FileNotFoundError):
        root.stat(f"{deep}/none/newer")
    with pytest.raises(NotADirectoryError):
        root.stat("/a/b/file/x/y")


@pytest.mark.skipif(not beneath.IS_HAD, reason="this kernel does not walk for us")
@pytest.mark.parametrize("way", ["{deep}/x", "/link{rest}/x", "{deep}/none/x", "{deep}/up/x"])
def test_a_deep_name_takes_few_calls(tree, deep, way, monkeypatch):
    """However deep a client has gone, its commands cost about the same."""
    opened = []

    def counted(path, *arguments, **more):
        opened.append(path)
        return real_open(path, *arguments, **more)

    real_open = os.open
    root = Root(tree)
    monkeypatch.setattr(os, "open", counted)
    with pytest.raises(OSError):
        root.stat(way.format(deep=deep, rest=deep[2:]))
    root.close()
    assert len(opened) < 20


def test_a_name_is_not_cut_off_at_a_nul(root):
    with pytest.raises(ValueError, match="null"):
        root.stat("/a/b\0/c/../file")


def test_a_link_in_the_place_of_a_partial_file_is_not_followed(root: Root, tree: Path) -> None:
    part = "/a/.x.mpx-0123456789ab.part"
    (tree / part[1:]).symlink_to("b/file")
    before = (tree / "a/b/file").stat()
    for use in (
        lambda: root.open_for_writing(part, create=True, truncate=True),
        lambda: root.open_file(part),
        lambda: root.stat(part),
        lambda: root.set_mode(part, 0o777),
        lambda: root.shrink(part, 0),
        lambda: root.rename(part, "/a/x"),
    ):
        with pytest.raises(OSError):
            use()
    root.set_times(part, 1, 1)  # of the link
    assert (tree / "a/b/file").stat() == before
    assert not (tree / "a/x").is_symlink()
    (tree / "a/.x").symlink_to("b/file")  # any other is
    assert read(root, "/a/.x") == b"content"
    root.remove_file(part)
    (tree / part[1:]).write_bytes(b"new")
    root.rename(part, "/a/x")
    assert read(root, "/a/x") == b"new"
