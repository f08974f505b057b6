"""Tokens for tests: made up, and signed by nobody."""

import base64
import json
from typing import Any


def jwt(**claims: Any) -> str:
    """Return a JWT with these claims and no signature that anybody would take."""
    return ".".join((encoded(b'{"alg":"ES256"}'), encoded(json.dumps(claims).encode()), encoded(b"s" * 64)))


def encoded(content: bytes) -> str:
    """Return bytes as a part of a JWT has them."""
    return base64.urlsafe_b64encode(content).decode().rstrip("=")
