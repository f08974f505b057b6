"""Any tree in any form of listing: the walk gives every entry once, and what is on disk is the tree."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings
from interop.listing_server import NO_MLST, ListingDialogue, ListingServer
from interop.trees import TREE

import mpx as api
from mpx.engine.endpoint import Kind
from mpx.location import parse_location
from mpx.transfer.registry import open_endpoint
from mpx.transfer.scan import tasks

FORMS = ["MLSD", "MLSD without facts", "Unix", "DOS"]
NAMES = st.text("aA1é ;=->.[]\\\udcff\u0301", min_size=1, max_size=6).filter(
    lambda name: name not in (".", "..")
)
Tree = dict[str, Any]  # files as bytes, folders as trees
TREES: st.SearchStrategy[Tree] = st.recursive(
    st.dictionaries(NAMES, st.binary(max_size=20), max_size=4),
    lambda inner: st.dictionaries(NAMES, st.binary(max_size=20) | inner, max_size=4),
    max_leaves=12,
)


def below(tree: Tree, name: str) -> Iterator[tuple[str, Any]]:
    for base, found in tree.items():
        yield f"{name}/{base}", found
        if isinstance(found, dict):
            yield from below(found, f"{name}/{base}")


def line(form: str, name: str, found: Any) -> str:
    is_folder, size = isinstance(found, dict), 0 if isinstance(found, dict) else len(found)
    if form == "MLSD":
        return f"type={'dir' if is_folder else 'file'};size={size};modify=20260101120000; {name}"
    if form == "MLSD without facts":
        return f"modify=20260101120000; {name}"
    if form == "Unix":
        return f"{'d' if is_folder else '-'}rw-r--r--   1 u        g  {size:12} Jan 01 12:00 {name}"
    return f"11-25-26  04:46AM {'      <DIR>         ' if is_folder else f'{size:20}'} {name}"


def load(server: ListingServer, top: str, tree: Tree, form: str) -> None:
    """Have a server hold a tree, and list it in a form."""
    every = [(top, tree), *below(tree, top)]
    for name, found in every:
        if isinstance(found, dict):
            lines = "".join(line(form, base, each) + "\r\n" for base, each in found.items())
            server.listings[name] = lines.encode("utf-8", "surrogateescape")
            server.folders.add(name)
        else:
            server.files[name] = found


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tree=TREES)
def test_every_entry_comes_once(form: str, tree: Tree) -> None:
    with ListingServer({}, {}, NO_MLST if form in ("Unix", "DOS") else {}) as server:
        load(server, "/d", tree, form)
        end = open_endpoint(parse_location(f"{server.url}/d"), TREE, lambda: False, writing=False)
        try:
            info = end.stat("/d")
            assert info
            found = list(tasks([("/d", "dst", info)], end, TREE))
        finally:
            end.close()
    assert [task for task in found if task.skip or task.error] == []
    expected = {
        name: Kind.FOLDER if isinstance(each, dict) else Kind.FILE for name, each in below(tree, "/d")
    }
    assert sorted(task.source for task in found) == sorted(["/d", *expected])
    assert {task.source: task.info.kind for task in found if task.source != "/d"} == expected
    assert all(task.target == task.source.replace("/d", "dst", 1) for task in found)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tree=TREES, form=st.sampled_from(FORMS), lost=st.randoms(use_true_random=False))
def test_what_is_on_disk_is_the_tree_but_for_what_failed(tree: Tree, form: str, lost) -> None:
    """Some files cannot be retrieved and some folders not be listed: those are named, all else is there."""
    every = dict(below(tree, "/d"))
    spoilt = {name for name in every if lost.random() < 0.2}

    def retrieve(dialogue: ListingDialogue, name: str) -> str | None:
        return "550 Permission denied" if name in spoilt else ListingDialogue._retr(dialogue, name)

    script = {**(NO_MLST if form in ("Unix", "DOS") else {}), "RETR": retrieve}
    with (
        ListingServer({}, {}, script) as server,
        tempfile.TemporaryDirectory(prefix="mpx-test-") as here,
    ):
        load(server, "/d", tree, form)
        for name in spoilt & server.folders:
            server.listings[name] = lambda dialogue: "550 Permission denied"
        expected = {
            name: found
            for name, found in every.items()
            if not any(name.startswith(f"{other}/") for other in spoilt)
            and (isinstance(found, dict) or name not in spoilt)
        }
        named = {name for name in spoilt if not any(name.startswith(f"{other}/") for other in spoilt)}
        try:
            api.copy(f"{server.url}/d", f"{here}/d", TREE)
        except api.MpxError:
            assert named
        else:
            assert not named
        there = {f"/d/{path.relative_to(Path(here) / 'd')}": path for path in (Path(here) / "d").rglob("*")}
        assert there.keys() == expected.keys()
        for name, path in there.items():
            if path.is_file():
                assert path.read_bytes() == expected[name]
