"""One question to a controller that runs, over REST."""

import http.client
import json
import os
import ssl
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mpx.errors import AuthenticationError, ConnectionLost, MpxError, TransferTimeout, UsageError
from mpx.sdn_client import TOKEN_VARIABLE, distrusted, is_loopback
from mpx.text import shown

ANSWER_S = 10.0
MOST_ANSWER = 64 << 20  # bytes: nothing that answers as a controller says more
_PIECE_BYTES = 64 * 1024


class RestClient:
    """Where the controller is, and the token to show it. Raises UsageError where that cannot be right."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self.url = url.rstrip("/")
        if "@" in url:
            raise UsageError(
                "the URL of the controller has a user name or a password; "
                f"set {TOKEN_VARIABLE}, or give --token-file FILE"
            )
        if not _is_of_http(url):
            raise UsageError(
                f"'{shown(url)}' is no URL of a controller: write http://HOST:PORT or https://..."
            )
        parts = urlsplit(url)
        if token and parts.scheme == "http" and not is_loopback(parts.hostname or ""):
            raise UsageError(
                f"a token is not sent to {shown(url)}: anybody on the way could read it; use https://"
            )
        self._token = token
        # No proxy is between an operator and the controller, and the token is for nobody else.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NotElsewhere())

    def get(self, what: str) -> Any:
        """Return the answer of `GET /what`.

        Raises ConnectionLost where nobody listens, AuthenticationError without a token that is known,
        TransferTimeout, UsageError where another program answers, MpxError for what the controller refuses.
        """
        asked = urllib.request.Request(f"{self.url}/{what}")
        if self._token:
            asked.add_header("Authorization", f"Bearer {self._token}")
        try:
            with self._opener.open(asked, timeout=ANSWER_S) as answer:
                return json.loads(_body(answer))
        except urllib.error.HTTPError as error:
            raise self._refused(error) from None
        except TimeoutError:
            raise self._timed_out() from None
        except urllib.error.URLError as error:
            raise self._not_reached(error.reason) from None
        except OSError as error:
            raise self._not_reached(error) from None
        except (http.client.HTTPException, ValueError, RecursionError):
            raise self._no_controller() from None

    def _refused(self, error: urllib.error.HTTPError) -> MpxError:
        why = _detail(error)
        if error.code in (401, 403):
            return AuthenticationError(
                f"the controller at {self.url} rejected our credentials: {why}; "
                f"set {TOKEN_VARIABLE}, or give --token-file FILE"
            )
        if error.code == 404 and why in ("", "Not Found"):  # nothing of that name, rather than no path set
            return self._no_controller()
        return MpxError(f"the controller at {self.url} refuses: {why or error.reason}")

    def _not_reached(self, reason: object) -> MpxError:
        if isinstance(reason, TimeoutError):
            return self._timed_out()
        if isinstance(reason, ssl.SSLCertVerificationError):
            return AuthenticationError(f"the controller at {self.url} is not believed: {distrusted(reason)}")
        why = getattr(reason, "strerror", None) or reason
        return ConnectionLost(
            f"no controller answers at {self.url} ({why}); is one running there? --url says where it is"
        )

    def _timed_out(self) -> MpxError:
        return TransferTimeout(f"the controller at {self.url} has not answered within {ANSWER_S:g} s")

    def _no_controller(self) -> MpxError:
        return UsageError(f"what answers at {self.url} is no controller; --url says where it is")


def read_token(file: Path | None) -> str | None:
    """Return the token in a file, or that of the environment; raises UsageError where it cannot be read."""
    if file is None:
        token = os.environ.get(TOKEN_VARIABLE, "")
    else:
        try:
            token = file.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"the token in {file} cannot be read: {error}") from None
    token = token.strip()
    if not token.isascii() or not token.isprintable():
        raise UsageError(f"the token in {file or TOKEN_VARIABLE} has characters that no token has")
    return token or None


class _NotElsewhere(urllib.request.HTTPRedirectHandler):
    """Follows nobody who says that the controller is somewhere else: it would be shown the token."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Return no request."""


def _body(answer: http.client.HTTPResponse) -> bytes:
    """Return what is answered; raises TimeoutError after more than ANSWER_S, ValueError where it is too much.

    Read as it comes: whoever sends a byte now and then would be waited for without end.
    """
    until_s, body = time.monotonic() + ANSWER_S, bytearray()
    while piece := answer.read1(_PIECE_BYTES):
        body += piece
        if len(body) > MOST_ANSWER:
            raise ValueError(f"more than {MOST_ANSWER} bytes")
        if time.monotonic() > until_s:
            raise TimeoutError
    return bytes(body)


def _detail(error: urllib.error.HTTPError) -> str:
    try:
        return shown(str(json.loads(error.read(1 << 16))["detail"]))
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError, RecursionError):
        return ""


def _is_of_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and parts.port != 0
            and url.isascii()
            and url.isprintable()
            and " " not in url
        )
    except ValueError:
        return False
