"""The key of discovery frames: whole or not there, and never one that is no key."""

import errno
import os
import secrets
from pathlib import Path
from types import ModuleType

import pytest
from mpx_controller.secret_file import SECRET_BYTES, kept_secret

from mpx.errors import UsageError


def secret_file(state: Path) -> Path:
    return state.with_name(f"{state.name}.secret")


def test_a_key_is_made_once_for_its_owner_only(tmp_path: Path) -> None:
    state = tmp_path / "new" / "state.json"
    secret = kept_secret(state)
    assert len(secret) == SECRET_BYTES and kept_secret(state) == secret
    assert secret_file(state).stat().st_mode & 0o777 == 0o600
    assert list(state.parent.iterdir()) == [secret_file(state)]
    assert kept_secret(tmp_path / "other.json") != secret


@pytest.mark.parametrize("fails", [(secrets, "token_bytes"), (os, "fsync")])
def test_a_failed_write_leaves_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: tuple[ModuleType, str]
) -> None:
    """The disk is full once, when the file is open; the next start makes a key."""
    state = tmp_path / "state.json"

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(*fails, full)
        with pytest.raises(UsageError, match=r"cannot keep the key .*state\.json\.secret: No space left"):
            kept_secret(state)
    assert not list(tmp_path.iterdir())
    assert len(kept_secret(state)) == SECRET_BYTES


def test_what_a_controller_left_that_was_killed_is_in_nobodys_way(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    (tmp_path / ".state.json.secret.new").write_bytes(b"cut sh")
    assert len(kept_secret(state)) == SECRET_BYTES
    assert list(tmp_path.iterdir()) == [secret_file(state)]


@pytest.mark.parametrize("size", [0, SECRET_BYTES - 1, SECRET_BYTES + 1])
def test_what_is_no_key_is_refused(tmp_path: Path, size: int) -> None:
    state = tmp_path / "state.json"
    secret_file(state).write_bytes(bytes(size))
    with pytest.raises(
        UsageError, match=rf"{secret_file(state)} is not a key .* {size} bytes, not 32; remove it"
    ):
        kept_secret(state)
    assert secret_file(state).stat().st_size == size
