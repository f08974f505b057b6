"""Files that appear under their name whole or not at all: what is written beside them replaces them."""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from mpx.errors import UsageError


@contextlib.contextmanager
def whole(name: str) -> Iterator[Path]:
    """Yield where to write what becomes `name` at the end of `with`; raises UsageError if that fails.

    What is no file (/dev/stdout, a fifo) is written to itself: there is nothing to replace.
    """
    target = Path(name)
    with _written(name):
        if target.exists() and not target.is_file():
            yield target
            return
        aside = _aside(target)
        try:
            yield aside
            aside.replace(target)
        except BaseException:
            with contextlib.suppress(OSError):
                aside.unlink()
            raise


def check_writable(name: str) -> None:
    """Raise UsageError if `whole` cannot write there; known before there is anything to write."""
    target = Path(name)
    with _written(name):
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        if target.exists() and not target.is_file():
            return
        aside = _aside(target)
        aside.touch()
        aside.unlink()


def _aside(target: Path) -> Path:
    return target.with_name(f".{target.name[:200]}.{os.getpid()}")


@contextlib.contextmanager
def _written(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"cannot write {name}: {error.strerror}") from None
