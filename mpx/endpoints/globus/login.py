"""The login of this user at Globus, as `mpx globus login` keeps it: for this account alone (0600).

    globus.json in the state folder: {"mpx": 1, "client_id": "...", "tokens": {SERVER: {...}},
                                      "data_access": [COLLECTION...]}

SERVER is `transfer.api.globus.org`, or a collection whose HTTPS the user has consented to.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mpx.errors import UsageError
from mpx.files.state_folder import StateFolder

NAME = "globus.json"
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


def save(login: GlobusLogin) -> None:
    """Keep a login in the place of what was kept; raises UsageError."""
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
    with StateFolder() as state:
        aside = f"{NAME}.{os.getpid()}"
        try:
            with os.fdopen(state.create(aside), "w") as file:
                json.dump(kept, file)
            state.rename(aside, NAME)
        except OSError as error:
            raise UsageError(f"cannot write {state.path / NAME}: {error.strerror}") from None


def forget() -> None:
    """Remove what is kept."""
    with StateFolder() as state:
        state.unlink(NAME)
