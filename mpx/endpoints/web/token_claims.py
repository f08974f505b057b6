"""What a bearer token says of itself: when it expires, and what it permits. Pure.

Nothing is verified, which is up to the server; it is read so that a token that cannot work is told as such.
Of JWTs (RFC 7519) the claims are read, of macaroons until when they last; others say nothing that could be.
"""

import base64
import json
import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from mpx.text import shown

_PARTS = 3  # header, claims, signature; an encrypted one has five
_MOST_SHOWN = 500  # characters of a claim
# A caveat of macaroons, as dCache and XRootD make them; the first of several ends it.
_BEFORE = re.compile(
    rb"before:([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.[0-9]{1,9})?Z", re.ASCII
)


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
    try:
        if len(parts) == 1:
            return TokenClaims(_macaroon_ends(_decoded(token)))
        if len(parts) != _PARTS:
            return TokenClaims()
        found = json.loads(_decoded(parts[1]))
    except (ValueError, RecursionError):
        return TokenClaims()
    if not isinstance(found, dict):
        return TokenClaims()
    return TokenClaims(
        _time(found.get("exp")), _time(found.get("nbf")), _text(found.get("scope")), _text(found.get("aud"))
    )


def _decoded(text: str) -> bytes:
    """Return what is in base64, of URLs or not; raises ValueError."""
    body = text.rstrip("=").replace("+", "-").replace("/", "_")
    return base64.b64decode(body + "=" * (-len(body) % 4), altchars=b"-_", validate=True)


def _macaroon_ends(content: bytes) -> float | None:
    """Return when a macaroon ends, of which form ever: its caveats stand in it as they are."""
    ends = [
        datetime.fromisoformat(found.decode("ascii")).replace(tzinfo=UTC).timestamp()
        for found in _BEFORE.findall(content)
    ]
    return min(ends, default=None)


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
