"""Walks over trees made up here: their bounds, folders within themselves, and what a server says of both."""

import itertools
import posixpath
from collections.abc import Callable, Iterator, Sequence

import pytest

from mpx import tree_walk
from mpx.endpoint import FileInfo, Kind
from mpx.errors import MpxError, SourceError
from mpx.options import CopyOptions
from mpx.tree_walk import Task, walk

FOLDER, FILE = FileInfo(Kind.FOLDER), FileInfo(Kind.FILE, 1)
Listed = tuple[str, FileInfo | MpxError]


class Tree:
    """Lists what `lists` says of a folder; names in `known` are what they are there."""

    def __init__(
        self, lists: Callable[[str], Iterator[Listed]], known: dict[str, FileInfo] | None = None
    ) -> None:
        self.lists = lists
        self.known = known or {}
        self.listed = 0

    def check_name(self, name: str) -> None: ...

    def stat(self, name: str, *, follow: bool = True) -> FileInfo | None:
        return self.known.get(name, FOLDER)

    def stats(self, names: Sequence[str], *, follow: bool = True) -> list[FileInfo | MpxError | None]:
        return [self.stat(name) for name in names]

    def entries(self, name: str) -> Iterator[Listed]:
        self.listed += 1
        return self.lists(name)


def walked(tree: Tree, info: FileInfo = FOLDER, top: str = "/top", links: str = "follow") -> list[Task]:
    return list(walk(top, "dst", info, tree, CopyOptions(recursive=True, links=links)))


def errors(tasks: list[Task]) -> list[str]:
    return [str(task.error) for task in tasks if task.error]


def below(structure: dict[str, dict[str, FileInfo]]) -> Callable[[str], Iterator[Listed]]:
    return lambda name: iter(structure.get(name, {}).items())


def test_a_folder_in_each_folder() -> None:
    tree = Tree(lambda _: iter([("d", FOLDER), ("f", FILE)]))
    tasks = walked(tree)
    (said,) = errors(tasks)
    assert "nested deeper than" in said
    assert tree.listed == tree_walk.DEEPEST + 1
    assert sum(task.info.kind is Kind.FILE for task in tasks) == tree.listed


def test_many_folders_in_each_folder_end_too() -> None:
    tree = Tree(lambda _: iter([(f"d{i}", FOLDER) for i in range(30)]))
    said = errors(walked(tree))
    assert "seems to have no end" in said[-1]
    assert len(said) == tree_walk.MOST_TOO_DEEP + 1
    assert tree.listed < 2 * tree_walk.DEEPEST


def test_long_names_end_sooner() -> None:
    tree = Tree(lambda _: iter([("x" * 255, FOLDER)]))
    (said,) = errors(walked(tree))
    assert "characters" in said
    assert tree.listed < 40


@pytest.mark.parametrize("info", [FOLDER, FileInfo(Kind.LINK, 1, link_target="x")])
def test_a_listing_of_folders_or_links_without_end(info: FileInfo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_walk, "MOST_WAITING_BYTES", 100_000)
    tree = Tree(lambda _: ((f"d{i}", info) for i in itertools.count()))
    (said,) = errors(walked(tree))
    assert "too many folders and links" in said
    assert tree.listed == 1


def test_errors_in_the_place_of_entries_are_told_and_the_rest_goes_on() -> None:
    lines = [("a", FILE), ("", SourceError("not read")), ("b", SourceError("odd")), ("c", FOLDER)]
    tasks = walked(Tree(lambda name: iter(lines if name == "/top" else [])))
    assert errors(tasks) == ["not read", "odd"]
    assert [task.source for task in tasks if not task.error] == ["/top", "/top/a", "/top/c"]


def test_a_name_listed_twice_is_copied_once() -> None:
    tasks = walked(Tree(lambda name: iter([("a", FILE), ("A", FILE), ("a", FILE)])))
    assert [(task.source, task.skip, task.is_folded) for task in tasks[1:]] == [
        ("/top/a", "", False),
        ("/top/A", "", True),
        ("/top/a", "listed twice", False),
    ]


def unique(identity: str, kind: Kind = Kind.FOLDER) -> FileInfo:
    return FileInfo(kind, 1, identity=identity)


def test_a_folder_that_holds_itself_is_walked_once() -> None:
    same = {"sub": unique("2"), "f": unique("3", Kind.FILE)}
    structure = {"/top": same, "/top/sub": {"up": unique("1")}, "/top/sub/up": same}
    tasks = walked(Tree(below(structure)), unique("1"))
    assert [(posixpath.basename(task.source), task.skip) for task in tasks] == [
        ("top", ""),
        ("f", ""),
        ("sub", ""),
        ("up", tree_walk.INSIDE_ITSELF),
    ]


def test_a_folder_that_holds_the_top_is_not_walked() -> None:
    above = {"top": unique("1"), "other": unique("9", Kind.FILE)}
    structure = {"/top": {"up": unique("0")}, "/top/up": above, "/": above}
    tasks = walked(Tree(below(structure), {"/": unique("0")}), unique("1"))
    assert [(task.source, task.skip) for task in tasks] == [
        ("/top", ""),
        ("/top/up", tree_walk.INSIDE_ITSELF),
    ]


def test_a_server_that_gives_all_folders_one_identity_is_not_believed() -> None:
    structure = {
        "/top": {"a": unique("1"), "b": unique("1")},
        "/top/a": {"b": unique("1")},
        "/top/a/b": {"f": unique("1", Kind.FILE)},
        "/top/b": {"g": unique("1", Kind.FILE)},
    }
    tasks = walked(Tree(below(structure)), unique("1"))
    assert {task.source for task in tasks if task.info.kind is Kind.FILE} == {"/top/a/b/f", "/top/b/g"}
    assert not any(task.skip or task.error for task in tasks)


def test_a_link_without_a_target_is_followed() -> None:
    link = FileInfo(Kind.LINK, 4)
    structure = {"/top": {"link": link}, "/top/link": {"f": FILE}}
    assert [task.source for task in walked(Tree(below(structure)))] == ["/top", "/top/link", "/top/link/f"]
    assert ["does not say where" in said for said in errors(walked(Tree(below(structure)), links="keep"))]


def test_a_link_to_the_root_holds_the_top() -> None:
    link = FileInfo(Kind.LINK, link_target="..")
    structure = {"/top": {"up": link}, "/top/up": {"top": FOLDER}}
    tasks = walked(Tree(below(structure)))
    assert [(task.source, task.skip) for task in tasks] == [("/top", ""), ("/top/up", tree_walk.LEADS_BACK)]
