"""A folder for sockets that only this account may reach. Imports little, unlike tempfile."""

import contextlib
import os

_LONGEST = 60  # characters of what it is in: names of sockets have 107 at most


def new_socket_folder(prefix: str) -> str:
    """Make one below TMPDIR, or in /tmp, and return its path; empty where neither takes it."""
    for place in (os.environ.get("TMPDIR", ""), "/tmp"):
        if place.startswith("/") and len(place) <= _LONGEST:
            folder = f"{place}/{prefix}{os.urandom(8).hex()}"
            with contextlib.suppress(OSError):
                os.mkdir(folder, 0o700)
                return folder
    return ""


def remove_socket_folder(folder: str) -> None:
    """Remove it with the sockets in it."""
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            os.unlink(f"{folder}/{name}")
        os.rmdir(folder)
