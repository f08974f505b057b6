"""What a bench may import: `make check` runs this beside the contracts of pyproject.toml.

Benches are scripts, which import-linter does not take for packages.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

BENCH = Path(__file__).resolve().parents[2] / "bench"
# Copies and probes are measured as users start them, by the command or the functions of `mpx`.
NOT_OF_MPX = ("mpx.__main__", "mpx.cli", "mpx.commands", "mpx.probing", "mpx.transfer")
SHARED = {
    "control_clock",
    "far_controller",
    "figures",
    "harness",
    "many_paths",
    "peers",
}  # by scripts and packages
PACKAGES = {folder.parent.name for folder in BENCH.glob("*/__init__.py")}
OURS = {file.stem for file in BENCH.glob("*.py")} | PACKAGES


def imports(file: Path) -> Iterator[str]:
    """Yield the names of what a file imports anywhere, `from a import b` as both `a` and `a.b`."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def place(file: Path) -> str:
    """Return the package or the script that a file is."""
    return file.relative_to(BENCH).parts[0].removesuffix(".py")


def refused(by: str, name: str) -> bool:
    if any(name == each or name.startswith(f"{each}.") for each in NOT_OF_MPX):
        return True
    other = name.split(".")[0]
    if other not in OURS or other == by:
        return False
    if by in SHARED:
        return other not in SHARED
    return by in PACKAGES and other not in SHARED  # a script may import packages and other scripts


def test_benches_measure_from_outside_and_their_packages_import_no_scripts() -> None:
    assert len(PACKAGES) >= 4 and SHARED <= OURS
    found = [
        f"{file.relative_to(BENCH)} -> {name}"
        for file in sorted(BENCH.rglob("*.py"))
        for name in imports(file)
        if refused(place(file), name)
    ]
    assert not found
