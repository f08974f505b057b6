"""The login of this user at Globus, as `mpx globus login` keeps it: for this account alone (0600).

    globus.json in the state folder: {"mpx": 1, "client_id": "...", "tokens": {SERVER: {...}},
                                      "data_access": [COLLECTION...]}

SERVER is `transfer.api.globus.org`, or a collection whose HTTPS the user has consented to.
"""

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mpx.errors import UsageError
from mpx.files.state_folder import StateFolder

NAME, _LOCK = "globus.json", "globus.lock"
_VERSION = 1
_LARGEST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class GlobusToken:
    """What lets us in at one server, and what another such is had for; repr() shows neither."""

    access: str = field(repr=False)
    refresh: str = field(repr=False)
    expires_s: int  # Unix time


@dataclass(frozen=True, slots=True)
class GlobusLogin:
    """A login, and what it is good for."""

    client_id: str
    tokens: Mapping[str, GlobusToken]  # by server
    data_access: tuple[str, ...] = ()  # collections that the user has consented to have read and written

    def with_token(self, server: str, token: GlobusToken) -> "GlobusLogin":
        """Return the same with another token for a server."""
        return replace(self, tokens={**self.tokens, server: token})

    def secrets(self) -> list[str]:
        """Return what is to be taken back at a logout."""
        return [secret for token in self.tokens.values() for secret in (token.refresh, token.access)]


def load() -> GlobusLogin | None:
    """Return the login that is kept, None where there is none; UsageError for a file that is no use."""
    with StateFolder() as state:
        try:
            fd = state.open(NAME, os.O_RDONLY)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UsageError(f"cannot read {state.path / NAME}: {error.strerror}") from None
        with os.fdopen(fd, "rb") as file:
            if os.fstat(fd).st_mode & 0o077:
                raise UsageError(
                    f"{state.path / NAME} holds tokens and is not yours alone; chmod 600 {state.path / NAME}"
                )
            text = file.read(_LARGEST_BYTES)
        try:
            return _login(json.loads(text))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise UsageError(
                f"{state.path / NAME} is no login of mpx; remove it and run mpx globus login"
            ) from None


def _login(kept: Any) -> GlobusLogin:
    if kept["mpx"] != _VERSION:
        raise ValueError("another version")
    tokens = {
        str(server): GlobusToken(str(one["access"]), str(one["refresh"]), int(one["expires"]))
        for server, one in kept["tokens"].items()
    }
    return GlobusLogin(str(kept["client_id"]), tokens, tuple(map(str, kept["data_access"])))


def save(login: GlobusLogin) -> GlobusLogin | None:
    """Keep a login in the place of what was kept, and return that, if it can be read; raises UsageError."""
    with _alone() as state:
        before = None
        with contextlib.suppress(UsageError):
            before = load()
        _write(state, login)
        return before


def renew(server: str, known: GlobusToken, token: GlobusToken) -> None:
    """Keep a token in the place of a known one, if that is what is kept by now; raises UsageError.

    Else the user has logged out, or in anew, meanwhile.
    """
    with _alone() as state:
        now = load()
        if now is not None and now.tokens.get(server) == known:
            _write(state, now.with_token(server, token))


def take() -> GlobusLogin | None:
    """Remove what is kept, and return it; raises UsageError."""
    with _alone() as state:
        login = load()
        state.unlink(NAME)
        return login


@contextlib.contextmanager
def _alone() -> Iterator[StateFolder]:
    """Keep other processes from changing what is kept meanwhile; raises UsageError."""
    with StateFolder() as state:
        try:
            fd = state.open(_LOCK, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise UsageError(f"cannot open {state.path / _LOCK}: {error.strerror}") from None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield state
        except OSError as error:
            raise UsageError(f"cannot write {state.path / NAME}: {error.strerror}") from None
        finally:
            os.close(fd)


def _write(state: StateFolder, login: GlobusLogin) -> None:
    tokens = {
        server: {"access": one.access, "refresh": one.refresh, "expires": one.expires_s}
        for server, one in login.tokens.items()
    }
    kept = {
        "mpx": _VERSION,
        "client_id": login.client_id,
        "tokens": tokens,
        "data_access": list(login.data_access),
    }
    aside = f"{NAME}.new"
    with os.fdopen(state.create(aside), "w") as file:
        json.dump(kept, file)
    state.rename(aside, NAME)
