"""The versions of mpx, lab and bench that measured a cell, by the contents of their folders.

Written `MPX.LAB.BENCH`, each the tree that git has of it, and behind a + what was changed since.
"""

import hashlib
import subprocess
from collections.abc import Iterable
from pathlib import Path

from apt.tools import is_mpx

HERE = Path(__file__).resolve().parents[2]
PARTS = {"mpx": "mpx", "lab": "lab/mpx_lab", "bench": "bench/apt"}
DIGITS = 10  # of a hash; git's own abbreviations grow with the repository
UNKNOWN = "unknown"  # of parts that older cells did not name


def code(root: Path = HERE) -> str:
    """Return the version of a work tree; raises OSError or CalledProcessError where git has none."""
    return ".".join(_part(root, folder) for folder in PARTS.values())


def _part(root: Path, folder: str) -> str:
    changed = _git(root, "diff", "HEAD", "--", folder)
    for name in _git(root, "ls-files", "-z", "--others", "--exclude-standard", "--", folder).split(b"\0"):
        if name:
            changed += name + b"\0" + (root / name.decode()).read_bytes()
    tree = _git(root, "rev-parse", f"HEAD:{folder}").decode()[:DIGITS]
    return tree + (f"+{hashlib.sha256(changed).hexdigest()[:DIGITS]}" if changed else "")


def _git(root: Path, *words: str) -> bytes:
    return subprocess.run(["git", "-C", str(root), *words], capture_output=True, check=True).stdout


def agree(one: str, other: str, tool: str) -> bool:
    """Whether two versions are equal in the parts that matter for a tool."""
    first = 0 if is_mpx(tool) else 1
    return _parts(one)[first:] == _parts(other)[first:]


def _parts(name: str) -> list[str]:
    found = name.split(".")
    return found + [UNKNOWN] * (len(PARTS) - len(found))


def described(runs: Iterable[tuple[str, str]]) -> str:
    """Return a text that names the versions of all runs, given as (tool, version)."""
    seen: dict[str, set[str]] = {part: set() for part in PARTS}
    for tool, name in runs:
        for part, found in zip(PARTS, _parts(name), strict=True):
            if part != "mpx" or is_mpx(tool):
                seen[part].add(found)
    several = any(len(found) > 1 for found in seen.values())
    parts = (f"{part} {' and '.join(sorted(found))}" for part, found in seen.items() if found)
    return f"{'of SEVERAL codes' if several else 'code'}: {', '.join(parts)}"
