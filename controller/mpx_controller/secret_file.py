"""The key that signs discovery frames, kept in a file beside the state over restarts."""

import contextlib
import os
import secrets
from pathlib import Path

from mpx.errors import UsageError

SECRET_BYTES = 32


def kept_secret(state: Path) -> bytes:
    """Return the key beside the state, made where there is none.

    Raises UsageError for a file that cannot be read or made, and for one that is no key: frames must not be
    signed with what others can guess.
    """
    file = state.with_name(f"{state.name}.secret")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            _make(file)
        secret = file.read_bytes()
    except OSError as error:
        raise UsageError(
            f"cannot keep the key of discovery frames in {file}: {error.strerror}; name another file as "
            "--state, or let the controller write there"
        ) from None
    if len(secret) != SECRET_BYTES:
        raise UsageError(
            f"{file} is not a key of discovery frames: it has {len(secret)} bytes, not {SECRET_BYTES}; "
            "remove it, and the controller makes a new one when it starts"
        )
    return secret


def _make(file: Path) -> None:
    """Write a new key aside, and give it its name once it is on the disk; only its owner may read it."""
    fresh = file.with_name(f".{file.name}.new")
    fresh.unlink(missing_ok=True)  # of a controller that was killed
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as made:
            made.write(secrets.token_bytes(SECRET_BYTES))
            made.flush()
            os.fsync(made.fileno())
        fresh.rename(file)
    except BaseException:
        with contextlib.suppress(OSError):
            fresh.unlink(missing_ok=True)
        raise
