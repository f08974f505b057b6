"""The server as one file of pure standard library, to be sent where there is no mpx: Python 3.9 and later.

It holds the modules that `mpx serve --stdio` imports, as they stand here but for what Python 3.9 lacks: types
in annotations are not evaluated, data classes have no slots, patterns no possessive quantifiers, zip() does
not compare lengths, and event descriptors come from the C library.
"""

import ast
import io
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[4]  # what holds the package
_FIRST = ("mpx.serve.stdio", "mpx.serve.stdio_server", "mpx.serve.stdio_serving")
_TIME = (1980, 1, 1, 0, 0, 0)  # the same file from the same sources
_SLOTS = re.compile(r", slots=True|slots=True, |\(slots=True\)")
_POSSESSIVE = re.compile(r"(?<=[)\]][*+])\+")  # quantifiers, of Python 3.11: they only save time
_STRICT = re.compile(r", strict=True(?=\))")  # of zip(), where it finds mistakes of ours
_MAIN = """\
import os

if not hasattr(os, "eventfd"):
    import ctypes
    import struct

    _C = ctypes.CDLL(None, use_errno=True)
    os.EFD_NONBLOCK, os.EFD_CLOEXEC, os.EFD_SEMAPHORE = 0o4000, 0o2000000, 1

    def _eventfd(value, flags=os.EFD_CLOEXEC):
        fd = _C.eventfd(value, flags)
        if fd < 0:
            raise OSError(ctypes.get_errno(), "no event descriptor")
        return fd

    os.eventfd = _eventfd
    os.eventfd_read = lambda fd: struct.unpack("=Q", os.read(fd, 8))[0]
    os.eventfd_write = lambda fd, value: os.write(fd, struct.pack("=Q", value)) and None

from mpx.serve.stdio import main

main(globals().get("REQUEST"))
"""


def bundle() -> bytes:
    """Return the file: a zip that Python runs. The same sources give the same bytes."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, text in sorted({**_modules(), "__main__.py": _MAIN}.items()):
            archive.writestr(zipfile.ZipInfo(name, _TIME), text, zipfile.ZIP_DEFLATED, 9)
    return made.getvalue()


def for_older(source: str) -> str:
    """Return a module as Python 3.9 takes it."""
    text = _STRICT.sub("", _POSSESSIVE.sub("", _SLOTS.sub("", source)))
    if re.search(r"^from __future__", text, re.MULTILINE):
        return text
    body = ast.parse(text).body
    has_words = bool(body) and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    after = (body[0].end_lineno or 0) if has_words else 0
    lines = text.splitlines(keepends=True)
    return "".join([*lines[:after], "from __future__ import annotations\n", *lines[after:]])


def _modules() -> dict[str, str]:
    """Return the sources of all that the server imports of mpx, by their names in the archive."""
    found: dict[str, str] = {}
    waiting = list(_FIRST)
    while waiting:
        module = waiting.pop()
        path = _path(module)
        name = path.relative_to(_ROOT).as_posix() if path else ""
        if not path or name in found:
            continue
        source = path.read_text("utf-8")
        found[name] = for_older(source)
        waiting += [module.rpartition(".")[0], *_imported(source)]
    return found


def _path(module: str) -> Path | None:
    """Return where a module of mpx stands; None for what is none."""
    base = _ROOT.joinpath(*module.split("."))
    for path in (base / "__init__.py", base.with_suffix(".py")):
        if module and path.is_file():
            return path
    return None


def _imported(source: str) -> Iterator[str]:
    """Yield what a module imports of mpx when it is imported itself."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "mpx":
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.partition(".")[0] == "mpx")
