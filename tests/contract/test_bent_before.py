"""Servers for which a copy once fell short, as plain cases (test_bent_servers.py tries others at random)."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from contract.bent import Case
from contract.bent_checks import check_download, check_tree, check_tree_up, check_upload
from contract.test_bent_servers import folders, in_haste  # noqa: F401  fixtures
from interop.bends import Bend

DOWN = {
    "a session that is lost before the end of a file of unknown size, in MODE E": Case(
        (Bend("PORT", "another code", 0),), size_bytes=0, mode_e=True
    ),
    "likewise, and the next one is not": Case((Bend("PORT", "another code", 0, 0, 1),), 0, mode_e=True),
    "a file that came whole and was then refused, in MODE S": Case(
        (Bend("RETR deed", "done and refused", 0, 0, 1),), size_bytes=1000
    ),
    "likewise, always": Case((Bend("RETR deed", "done and refused"),), size_bytes=1000),
    "a file that came whole over a connection that was then reset": Case(
        (Bend("data", "whole and reset", 0, 0, 1),), size_bytes=70_000
    ),
    "a required checksum that is another one first, and then none": Case(
        (Bend("CKSM", "another number", 5525, 0, 1), Bend("CKSM", "another number", 104, 1)),
        size_bytes=1_500_000,
        checksums=True,
        lacks=frozenset({"MLST", "SIZE"}),
    ),
}
TREE = {
    "one of several files that came whole and was refused": Case(
        (Bend("RETR deed", "done and refused", 0, 0, 1),), lacks=frozenset({"MLST"})
    ),
    "a stream whose framing is broken, so that it ends before its size": Case(
        (
            Bend("block", "twice", 426),
            Bend("ERET deed", "done and refused", 93856, 2),
            Bend("block", "twice"),
        ),
        mode_e=True,
        streams=None,
    ),
    "a question answered twice, so that every further answer is that to the one before": Case(
        (Bend("MLST", "twice", 1, 0, 1),), mode_e=True
    ),
    "a port told after another reply": Case((Bend("EPSV", "another reply before", 1920, 0, 1),)),
    "a file that ends before its size, again and again, with whatever session is asked why": Case(
        (Bend("size", "other", 6, 0, 1), Bend("MLST", "cut and reset", 6, 1)), lacks=frozenset({"REST"})
    ),
    "files that are refused again and again, as are their connections": Case(
        (Bend("ERET deed", "done and refused", 0, 1), Bend("150", "cut and silent", 35609, 1, 1)), mode_e=True
    ),
}
UP = {
    "a stored file that goes on behind what its checksum proves": Case(
        (Bend("stored", "longer", 9056, 0, 1),), size_bytes=1, mode_e=True, checksums=True
    ),
    "a rename that is only said": Case((Bend("RNTO deed", "only said", 0, 0, 1),), size_bytes=1),
    "likewise, with an old file there": Case(
        (Bend("RNTO deed", "only said"),), size_bytes=1000, lacks=frozenset({"MLST"}), is_there=True
    ),
}
TREE_UP = {
    "files, of which no answer says that they are stored; one is empty": Case(
        (Bend("STOR", "more digits"),), checksums=True
    ),
}


@pytest.mark.parametrize("case", DOWN.values(), ids=DOWN)
def test_a_download(folders: Iterator[Path], case: Case) -> None:  # noqa: F811
    check_download(next(folders), case)


@pytest.mark.parametrize("case", TREE.values(), ids=TREE)
def test_a_tree(folders: Iterator[Path], case: Case) -> None:  # noqa: F811
    check_tree(next(folders), case)


@pytest.mark.parametrize("case", UP.values(), ids=UP)
def test_an_upload(folders: Iterator[Path], case: Case) -> None:  # noqa: F811
    check_upload(next(folders), case)


@pytest.mark.parametrize("case", TREE_UP.values(), ids=TREE_UP)
def test_a_tree_to_a_server(folders: Iterator[Path], case: Case) -> None:  # noqa: F811
    check_tree_up(next(folders), case)
