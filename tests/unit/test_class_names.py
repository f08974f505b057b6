"""One noun per thing: within a distribution no two public classes have the same name."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DISTRIBUTIONS = (
    "mpx",
    "controller/mpx_controller",
    "lab/mpx_lab",
    "train/mpx_train",
    "models/mpx_models",
    "bench",
)


def repeated(folder: Path) -> dict[str, list[str]]:
    """Return the names that several public classes of a folder have, with the files of these."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for file in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(f"{file.relative_to(folder)}:{node.lineno}")
    return {name: places for name, places in found.items() if len(places) > 1}


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_no_two_public_classes_have_one_name(distribution: str) -> None:
    folder = ROOT / distribution
    assert any(folder.rglob("*.py"))
    assert repeated(folder) == {}


def test_what_counts_as_the_same_name(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "a.py").write_text("class Same: ...\nclass _Private: ...\nclass Other: ...\n")
    (tmp_path / "inner" / "b.py").write_text("class _Private: ...\nif True:\n    class Same: ...\n")
    assert repeated(tmp_path) == {"Same": ["a.py:1", "inner/b.py:3"]}
