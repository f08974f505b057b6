"""The tokens that let into a server: what each may do, kept in the state folder of the account that serves.

Of a token only the SHA-256 of its secret is kept. Whoever creates and revokes them is another process than
the server, which looks at the file again when it has changed.
"""

import fcntl
import hmac
import json
import os
import secrets
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict

from mpx.endpoints.ftp.token import SECRET_BYTES, Token
from mpx.errors import UsageError
from mpx.files.state_folder import StateFolder
from mpx.serve.rights import TokenRights, digest_of
from mpx.serve.root import join

_FILE, _NEW, _LOCK = "serve-tokens.json", "serve-tokens.new", "serve-tokens.lock"
_ID_BYTES = 4
_LARGEST_BYTES = 16 * 1024 * 1024


def new_token(
    key: str, *, folder: str, writable: bool, until_s: float | None, note: str
) -> tuple[Token, TokenRights]:
    """Make a token for the server with that key, and what is to be kept of it."""
    token = Token(key, secrets.token_urlsafe(SECRET_BYTES))
    name = secrets.token_hex(_ID_BYTES)
    return token, TokenRights(name, digest_of(token.secret), join("/", folder), writable, until_s, note)


class TokenStore:
    """The tokens of this account. For any thread; methods raise UsageError where the file cannot be used."""

    def __init__(self, state: StateFolder) -> None:
        self._state = state
        self._lock = threading.Lock()
        self._seen: tuple[int, ...] | None = None  # what the file looked like when it was read; guarded
        self._grants: tuple[TokenRights, ...] = ()

    def grants(self) -> Sequence[TokenRights]:
        """Return what there is, expired ones too, the oldest first."""
        with self._lock:
            seen = self._look()
            if seen != self._seen:
                self._grants, self._seen = self._read(), seen
            return self._grants

    def find(self, secret: str) -> TokenRights | None:
        """Return what a secret allows; None for one that is unknown, revoked or expired."""
        digest, found = digest_of(secret), None
        for grant in self.grants():  # all of them, so that the time tells nothing
            if hmac.compare_digest(digest, grant.digest):
                found = grant
        return found if found and found.is_valid(time.time()) else None

    def still_holds(self, grant: TokenRights) -> bool:
        """Tell whether a grant was neither revoked nor has expired."""
        return grant in self.grants() and grant.is_valid(time.time())

    def add(self, grant: TokenRights) -> None:
        """Keep one more."""
        with self._changing():
            self._write([*self._read(), grant])

    def revoke(self, name: str) -> bool:
        """Forget one; False if there is none with that id."""
        with self._changing():
            before = self._read()
            left = [grant for grant in before if grant.id != name]
            if len(left) == len(before):
                return False
            self._write(left)
            return True

    def _look(self) -> tuple[int, ...] | None:
        try:
            found = self._state.stat(_FILE)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unusable(error) from None
        return found.st_ino, found.st_size, found.st_mtime_ns

    def _read(self) -> tuple[TokenRights, ...]:
        try:
            fd = self._state.open(_FILE, os.O_RDONLY)
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise self._unusable(error) from None
        try:
            with os.fdopen(fd, "rb") as file:
                return tuple(TokenRights(**each) for each in json.loads(file.read(_LARGEST_BYTES)))
        except (OSError, ValueError, TypeError) as error:
            raise self._unusable(error) from None

    def _write(self, grants: Sequence[TokenRights]) -> None:
        try:
            with os.fdopen(self._state.create(_NEW), "w") as file:
                json.dump([asdict(grant) for grant in grants], file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            self._state.rename(_NEW, _FILE)
        except OSError as error:
            raise self._unusable(error) from None

    @contextmanager
    def _changing(self) -> Iterator[None]:
        try:
            fd = self._state.open(_LOCK, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise self._unusable(error) from None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    def _unusable(self, error: Exception) -> UsageError:
        why = error.strerror if isinstance(error, OSError) else "it is not a list of tokens"
        return UsageError(f"cannot use the tokens in {self._state.path / _FILE}: {why}")
