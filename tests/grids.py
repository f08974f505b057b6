"""A throwaway grid that tests share, as its keys take time to make, and the environment of its user."""

import atexit
import contextlib
import functools
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from mpx_lab.private_grid import PrivateGrid

ACCOUNT = "nobody" if os.geteuid() == 0 else ""  # a server that runs as root serves nobody as root


def new_grid(folder: Path) -> PrivateGrid:
    """Make a grid whose files a test may change."""
    folder.mkdir()
    return PrivateGrid(folder, ACCOUNT)


@functools.cache
def shared_grid() -> PrivateGrid:
    """The grid of this process; nobody is to change its files."""
    folder = Path(tempfile.mkdtemp(prefix="mpx-grid-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    folder.chmod(0o755)  # its server works as somebody else
    return PrivateGrid(folder, ACCOUNT)


@contextlib.contextmanager
def as_user(grid: PrivateGrid) -> Iterator[None]:
    """Be the user of a grid: in this process, and in those that it starts."""
    before = {name: os.environ.get(name) for name in grid.user_environment}
    os.environ.update(grid.user_environment)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value
