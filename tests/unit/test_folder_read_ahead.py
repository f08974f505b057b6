"""Folders are listed ahead of a walk, each once, and what the walk sees is what is there."""

import threading
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from mpx.endpoints.globus.read_ahead import FolderReadAhead, each
from mpx.errors import ConnectionLost

TREES = st.recursive(
    st.just({}), lambda below: st.dictionaries(st.sampled_from("abcdef"), below, max_size=4), max_leaves=30
)
Tree = dict[str, "Tree"]


def folders_of(tree: Tree, name: str = "") -> dict[str, list[str]]:
    found = {name: list(tree)}
    for each_name, below in tree.items():
        found |= folders_of(below, f"{name}/{each_name}")
    return found


def walk(ahead: FolderReadAhead[list[str]], root: str = "/") -> list[str]:
    """As a walk through a tree goes: depth first, what it has seen last comes next."""
    seen, waiting = [], [root]
    while waiting:
        folder = waiting.pop()
        seen.append(folder.rstrip("/"))
        names = ahead.page(folder)
        ahead.found(folder, names)
        waiting += [f"{folder.rstrip('/')}/{name}" for name in names]
    return seen


@settings(max_examples=50, deadline=None)
@given(TREES)
def test_a_walk(tree: Tree) -> None:
    there, asked, lock = folders_of(tree), [], threading.Lock()

    def ask(folder: str, _: object) -> list[str]:
        with lock:
            asked.append(folder.rstrip("/"))
        return there[folder.rstrip("/")]

    ahead = FolderReadAhead(ask)
    assert sorted(walk(ahead)) == sorted(there)
    ahead.close()
    assert set(asked) == set(there)


def test_several_are_asked_at_once() -> None:
    """Those that come next, while the walk waits for one."""
    together = threading.Barrier(3, timeout=30)

    def ask(folder: str, _: object) -> list[str]:
        if folder == "/":
            return [str(i) for i in range(4)]
        if folder in ("/3", "/2", "/1"):
            together.wait()
        return []

    ahead = FolderReadAhead(ask)
    assert walk(ahead) == ["", "/3", "/2", "/1", "/0"]
    ahead.close()


def test_what_failed_ahead_is_asked_once_more() -> None:
    failed = []

    def ask(folder: str, _: object) -> list[str]:
        if folder == "/a/2" and not failed:
            failed.append(folder)
            raise ConnectionLost("lost")
        return {"/": ["a"], "/a": ["1", "2", "3"]}.get(folder, [])

    ahead = FolderReadAhead(ask)
    assert walk(ahead) == ["", "/a", "/a/3", "/a/2", "/a/1"] and failed
    ahead.close()


def test_what_is_under_way_ends_as_it_is_closed() -> None:
    began, ended = threading.Event(), threading.Event()

    def ask(folder: str, is_unwanted: Callable[[], bool]) -> list[str]:
        if folder == "/a":
            began.set()
            while not is_unwanted():
                assert not ended.wait(0.01)
            ended.set()
        return ["a", "b"] if folder == "/" else []

    ahead = FolderReadAhead(ask)
    ahead.found("/", ahead.page("/"))
    assert ahead.page("/b") == [] and began.wait(30)
    ahead.close()
    assert ended.is_set()
    ahead.found("/", ["c"])
    assert ahead.page("/c") == []


def test_calls_at_once_are_answered_in_order() -> None:
    assert each([lambda i=i: i for i in range(20)]) == list(range(20))  # type: ignore[misc]
    assert each([]) == []
