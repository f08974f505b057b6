"""Walks over trees made up here: their bounds, folders within themselves, and what a server says of both."""

import itertools
import posixpath
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from mpx.engine.endpoint import FileInfo, Kind
from mpx.errors import AuthenticationError, ConnectionLost, MpxError, NoSpace, SourceError, UsageError
from mpx.options import CopyOptions
from mpx.report import Skip
from mpx.transfer import tree_walk
from mpx.transfer.tree_walk import Task, walk

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
        self.asked: list[Sequence[str]] = []  # together

    def check_name(self, name: str) -> None: ...

    def stat(self, name: str, *, follow: bool = True) -> FileInfo | None:
        return self.known.get(name, FOLDER)

    def stats(self, names: Sequence[str], *, follow: bool = True) -> list[FileInfo | MpxError | None]:
        self.asked.append(names)
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


@pytest.mark.parametrize("links", ["keep", "skip"])
def test_links_that_are_not_followed_do_not_wait(links: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_walk, "MOST_WAITING_BYTES", 100_000)
    info = FileInfo(Kind.LINK, 1, link_target="x")
    tree = Tree(lambda _: ((f"d{i}", info) for i in itertools.count()))
    tasks = walk("/top", "dst", FOLDER, tree, CopyOptions(recursive=True, links=links))
    assert not errors(list(itertools.islice(tasks, 10_000)))


def test_links_are_asked_about_together() -> None:
    link = FileInfo(Kind.LINK, 1, link_target="x")
    known = {f"/top/l{i}": FILE for i in range(500)} | {"/top/l7": FileInfo(Kind.OTHER)}
    tree = Tree(below({"/top": dict.fromkeys([f"l{i}" for i in range(500)], link)}), known)
    tasks = walked(tree)
    assert [task.source for task in tasks] == ["/top", *(f"/top/l{i}" for i in range(500))]
    assert [len(names) for names in tree.asked] == [200, 200, 100]


def test_an_endless_listing_of_files_is_told_of_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_walk, "MANY_ENTRIES", 100)
    monkeypatch.setattr(tree_walk, "MOST_ENTRIES", 1000)
    told: list[str] = []
    tree = Tree(lambda name: ((f"f{i}", FILE) for i in itertools.count()))
    tasks = list(
        walk(
            "/top",
            "dst",
            FOLDER,
            tree,
            CopyOptions(recursive=True),
            note=lambda text, _severity: told.append(text),
        )
    )
    (said,) = errors(tasks)
    assert "more than 1000 entries" in said
    assert len(tasks) == 1 + 1000 + 1
    (note,) = told
    assert "/top" in note
    assert tree_walk.LISTS_MANY in note


@pytest.mark.parametrize("count", [1, 1000])
def test_a_listing_that_repeats_itself_without_end_is_left(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree_walk, "MOST_REPEATS", 500)
    lists = {"/top": lambda: ((f"f{i % count}", FILE) for i in itertools.count()), "/top/d": lambda: ()}
    tasks = walked(Tree(lambda name: iter(lists[name]())))
    (said,) = errors(tasks)
    assert f"the same {count} names again and again" in said
    assert sum(not task.skip and not task.error for task in tasks) == count + 1


def test_a_folder_that_lists_all_twice_is_copied() -> None:
    names = [f"f{i}" for i in range(20_000)]
    tasks = walked(Tree(lambda _: iter([(name, FILE) for name in [*names, *names]])))
    assert [posixpath.basename(task.source) for task in tasks if not task.skip] == ["top", *names]


def broken(errors: dict[str, MpxError]) -> Callable[[str], Iterator[Listed]]:
    """Folders a to f in the top with a file each; some listings break behind it."""

    def lists(name: str) -> Iterator[Listed]:
        yield from [(letter, FOLDER) for letter in "abcdef"] if name == "/top" else [("file", FILE)]
        if posixpath.basename(name) in errors:
            raise errors[posixpath.basename(name)]

    return lists


@pytest.mark.parametrize("kind", [SourceError, UsageError, NoSpace, ConnectionLost, AuthenticationError])
def test_a_folder_whose_listing_breaks_has_failed_and_the_rest_goes_on(kind: type[MpxError]) -> None:
    tasks = walked(Tree(broken({"b": kind("broken"), "d": kind("broken too")})))
    assert errors(tasks) == ["broken", "broken too"]
    assert sum(task.info.kind is Kind.FILE for task in tasks) == 6


def test_a_server_that_answers_nothing_more_ends_the_walk() -> None:
    class Gone(Tree):
        def stat(self, name: str, *, follow: bool = True) -> FileInfo | None:
            raise ConnectionLost("gone")

    with pytest.raises(ConnectionLost, match="broken"):
        walked(Gone(broken({"b": ConnectionLost("broken")})))
    with pytest.raises(ConnectionLost, match="at once"):  # nothing could ever be listed
        walked(Tree(broken({"top": ConnectionLost("at once")})))
    with pytest.raises(ConnectionLost, match="e"):  # four in a row
        walked(Tree(broken({letter: ConnectionLost(letter) for letter in "bcde"})))


def test_errors_in_the_place_of_entries_are_told_and_the_rest_goes_on() -> None:
    lines = [("a", FILE), ("", SourceError("not read")), ("b", SourceError("odd")), ("c", FOLDER)]
    tasks = walked(Tree(lambda name: iter(lines if name == "/top" else [])))
    assert errors(tasks) == ["not read", "odd"]
    assert [task.source for task in tasks if not task.error] == ["/top", "/top/a", "/top/c"]


def test_a_name_listed_twice_is_copied_once() -> None:
    tasks = walked(Tree(lambda name: iter([("a", FILE), ("A", FILE), ("a", FILE)])))
    assert [(task.source, task.skip, task.is_folded) for task in tasks[1:]] == [
        ("/top/a", None, False),
        ("/top/A", None, True),
        ("/top/a", Skip.REPEATED, False),
    ]


def test_two_of_one_name_that_differ_are_not_one() -> None:
    """As a server lists `a b` and `a%20b` that encodes no names."""
    tasks = walked(Tree(lambda _: iter([("a", FILE), ("a", replace(FILE, size_bytes=77))])))
    assert [task.error is None for task in tasks] == [True, True, False]
    (said,) = errors(tasks)
    assert "listed twice" in said


def unique(identity: str, kind: Kind = Kind.FOLDER) -> FileInfo:
    return FileInfo(kind, 1, identity=identity)


def test_a_folder_that_holds_itself_is_walked_once() -> None:
    same = {"sub": unique("2"), "f": unique("3", Kind.FILE)}
    structure = {"/top": same, "/top/sub": {"up": unique("1")}, "/top/sub/up": same}
    tasks = walked(Tree(below(structure)), unique("1"))
    assert [(posixpath.basename(task.source), task.skip) for task in tasks] == [
        ("top", None),
        ("f", None),
        ("sub", None),
        ("up", Skip.CONTAINS_ITSELF),
    ]


def test_a_folder_that_holds_the_top_is_not_walked() -> None:
    above = {"top": unique("1"), "other": unique("9", Kind.FILE)}
    structure = {"/top": {"up": unique("0")}, "/top/up": above, "/": above}
    tasks = walked(Tree(below(structure), {"/": unique("0")}), unique("1"))
    assert [(task.source, task.skip) for task in tasks] == [
        ("/top", None),
        ("/top/up", Skip.CONTAINS_ITSELF),
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


class Changing(Tree):
    """Where a folder within itself is listed to be compared, the first time goes wrong."""

    def __init__(self, first: Callable[[], Iterator[Listed]]) -> None:
        same = {"sub": unique("2"), "f": unique("3", Kind.FILE)}
        below_sub = {"bad": unique("1"), "up": unique("1")}
        structure = {"/top": same, "/top/sub": below_sub, "/top/sub/up": same, "/top/sub/bad": same}
        super().__init__(below(structure))
        self.first = first

    def entries(self, name: str) -> Iterator[Listed]:
        if name == "/top/sub/bad":
            return self.first()
        return super().entries(name)


def raising() -> Iterator[Listed]:
    raise SourceError("not listed")
    yield


@pytest.mark.parametrize("first", [raising, lambda: iter([("other", FILE)])])
def test_one_listing_that_fails_or_has_changed_keeps_loops_from_no_detection(
    first: Callable[[], Iterator[Listed]],
) -> None:
    tasks = walked(Changing(first), unique("1"))
    assert [task.source for task in tasks if task.skip == Skip.CONTAINS_ITSELF] == ["/top/sub/up"]


TREES = st.recursive(
    st.just(FILE),
    lambda inner: st.dictionaries(
        st.text("aAbé.-_ ", min_size=1, max_size=3).filter(lambda name: name not in (".", "..")),
        inner,
        max_size=5,
    ),
    max_leaves=40,
)


@given(st.dictionaries(st.sampled_from("abcdef"), TREES, max_size=5))
def test_every_entry_of_any_tree_comes_once(tree: dict[str, Any]) -> None:
    def lists(name: str) -> Iterator[Listed]:
        found = tree
        for part in name.split("/")[2:]:
            found = found[part]
        return iter([(base, FOLDER if isinstance(each, dict) else each) for base, each in found.items()])

    def expected(name: str, found: Any) -> Iterator[str]:
        yield name
        if isinstance(found, dict):
            for base, each in found.items():
                yield from expected(f"{name}/{base}", each)

    tasks = walked(Tree(lists))
    assert not any(task.skip or task.error for task in tasks)
    assert sorted(task.source for task in tasks) == sorted(expected("/top", tree))
    assert all(task.target == task.source.replace("/top", "dst", 1) for task in tasks)


def test_a_link_without_a_target_is_followed() -> None:
    link = FileInfo(Kind.LINK, 4)
    structure = {"/top": {"link": link}, "/top/link": {"f": FILE}}
    assert [task.source for task in walked(Tree(below(structure)))] == ["/top", "/top/link", "/top/link/f"]
    assert ["does not say where" in said for said in errors(walked(Tree(below(structure)), links="keep"))]


def test_a_link_to_the_root_holds_the_top() -> None:
    link = FileInfo(Kind.LINK, link_target="..")
    structure = {"/top": {"up": link}, "/top/up": {"top": FOLDER}}
    tasks = walked(Tree(below(structure)))
    assert [(task.source, task.skip) for task in tasks] == [("/top", None), ("/top/up", Skip.LINK_TO_ABOVE)]
