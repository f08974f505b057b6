"""What a bearer token says of itself: when it expires, and what it permits. Pure.

Nothing is verified, which is up to the server; it is read so that a token that cannot work is told as such.
A token that is no JWT (RFC 7519), such as a macaroon, says nothing that could be read.
"""

import base64
import json
import math
from dataclasses import dataclass
from typing import Any

from mpx.text import shown

_PARTS = 3  # header, claims, signature; an encrypted one has five
_MOST_SHOWN = 500  # characters of a claim


@dataclass(frozen=True, slots=True)
class TokenClaims:
    """What a token says; times in seconds since 1970, None where it says nothing."""

    expires_s: float | None = None
    begins_s: float | None = None
    scopes: str | None = None  # as messages show them: storage.read:/ storage.modify:/
    audience: str | None = None  # for which servers


def read_claims(token: str) -> TokenClaims:
    """Return what a token says; never raises, whatever the token is."""
    parts = token.split(".")
    if len(parts) != _PARTS:
        return TokenClaims()
    body = parts[1].rstrip("=")
    try:
        content = base64.b64decode(body + "=" * (-len(body) % 4), altchars=b"-_", validate=True)
        found = json.loads(content)
    except (ValueError, RecursionError):
        return TokenClaims()
    if not isinstance(found, dict):
        return TokenClaims()
    return TokenClaims(
        _time(found.get("exp")), _time(found.get("nbf")), _text(found.get("scope")), _text(found.get("aud"))
    )


def _time(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        seconds = float(value)
    except OverflowError:
        return None
    return seconds if math.isfinite(seconds) else None


def _text(value: Any) -> str | None:
    """Return a claim that is text, or a list of such, as it can be shown."""
    words = value if isinstance(value, list) else [value]
    found = " ".join(each for each in words if isinstance(each, str) and each)
    return shown(found[:_MOST_SHOWN]) or None
