"""What a token allows, and the one token of a server that its only client has started."""

import hashlib
import hmac
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class TokenRights:
    """What one token allows. `digest` is the SHA-256 of its secret, in hex digits."""

    id: str
    digest: str
    folder: str = "/"  # of the served tree; the token's holder sees nothing else
    writable: bool = False
    until_s: float | None = None  # seconds since 1970
    note: str = ""

    def is_valid(self, now_s: float) -> bool:
        """Tell whether it has not expired."""
        return self.until_s is None or now_s < self.until_s


class Tokens(Protocol):
    """Who may come in. For any thread."""

    def find(self, secret: str) -> TokenRights | None:
        """Return what a secret allows; None for one that is unknown, revoked or expired."""
        ...

    def still_holds(self, rights: TokenRights) -> bool:
        """Tell whether rights were neither revoked nor have expired."""
        ...


class OneSecret:
    """The only token of a server that one client has started for itself."""

    def __init__(self, secret: str) -> None:
        self._rights = TokenRights("", digest_of(secret), writable=True)

    def find(self, secret: str) -> TokenRights | None:
        """See Tokens."""
        is_right = hmac.compare_digest(digest_of(secret), self._rights.digest)
        return self._rights if is_right else None

    def still_holds(self, _: TokenRights) -> bool:
        """See Tokens."""
        return True


def digest_of(secret: str) -> str:
    """Return what is kept of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()
