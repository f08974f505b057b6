"""Bearer tokens of the user, found as WLCG tools find them (WLCG Bearer Token Discovery, version 1.0).

`--token-file`, else `BEARER_TOKEN`, else the file `BEARER_TOKEN_FILE`, else `$XDG_RUNTIME_DIR/bt_u<uid>`,
else `/tmp/bt_u<uid>`. Environment and files are looked at whenever a token is asked for: tokens last for an
hour or so, and others renew them. A token is shown to nobody but the server that it is sent to.
"""

import os
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from mpx.endpoints.web.token_claims import TokenClaims, read_claims
from mpx.endpoints.web.token_file import LARGEST_BYTES, TokenFile
from mpx.engine.endpoint import Admission
from mpx.errors import AuthenticationError
from mpx.hosts import parse_token_files
from mpx.text import named
from mpx.units import format_size

_GET = "(oidc-token, htgettoken)"
_TEXT, _FILE, _RUNTIME = "BEARER_TOKEN", "BEARER_TOKEN_FILE", "XDG_RUNTIME_DIR"
_VARIABLE = f"the variable {_TEXT}"  # as messages name it
_TMP = "/tmp"
_SENDABLE = re.compile(r"[!-~]+", re.ASCII)  # in a header, without blanks
_CLOCKS_DIFFER_S = 60.0  # of ours and that of who made a token, which is used at once


@dataclass(frozen=True, slots=True)
class BearerToken:
    """A token, and where it was found; neither repr() nor str() shows it."""

    secret: str = field(repr=False)
    source: str  # as messages name it: the variable BEARER_TOKEN, or a file

    @property
    def authorization(self) -> str:
        """The value of the header Authorization."""
        return f"Bearer {self.secret}"

    @property
    def claims(self) -> TokenClaims:
        """What it says of itself, as far as that can be read."""
        return read_claims(self.secret)

    @property
    def renewal(self) -> str:
        """What to do where it will have expired before a copy ends."""
        if self.source == _VARIABLE:
            return f"{_VARIABLE} cannot be renewed meanwhile, as a file can (--token-file, {_FILE})"
        return f"renew it {_GET}, its file is read again"


class BearerTokens:
    """The tokens of one copy, for every host. Safe to call from several threads: `_lock` guards `_files`."""

    def __init__(
        self,
        token_files: Sequence[str] = (),
        clock: Callable[[], float] = time.monotonic,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        """`token_files`: values of --token-file; UsageError for what is none. `clock`: in seconds."""
        self._choices = parse_token_files(token_files)
        self._clock, self._environment = clock, environment
        self._lock = threading.Lock()
        self._files: dict[str, TokenFile] = {}

    def for_host(self, host: str, port: int) -> BearerToken | None:
        """Return the token for a server, None where the user has none.

        A file is read again when it has changed, which is looked for once a second at most. Raises
        AuthenticationError for a file that cannot be read or that others may read, and for what is no token.
        """
        for choice in self._choices:
            if choice.of is None or choice.of.covers(host, port):
                return self._in_file(os.path.expanduser(choice.file), "--token-file")
        if text := self._environment.get(_TEXT, "").strip():
            return _checked(text, _VARIABLE)
        if file := self._environment.get(_FILE):
            return self._in_file(file, _FILE)
        for path in self._usual_files():
            if text := self._text_of(path, in_the_open=path.startswith(f"{_TMP}/")):
                return _checked(text, named(path))
        return None

    def check(self, host: str, port: int, now_s: float) -> BearerToken | None:
        """Return the token for a server, as for_host; AuthenticationError also where it is not valid now.

        `now_s`: since 1970.
        """
        token = self.for_host(host, port)
        if token and token.claims.expires_s is not None and token.claims.expires_s <= now_s:
            self._look_again()  # it may have been renewed just now
            token = self.for_host(host, port)
        if token is None:
            return None
        claims, which = token.claims, f"the token for {host}, found in {token.source},"
        if claims.expires_s is not None and claims.expires_s <= now_s:
            raise AuthenticationError(
                f"{which} has expired ({_when(claims.expires_s)}); get another one {_GET}, and run the same "
                "command again"
            )
        if claims.begins_s is not None and claims.begins_s > now_s + _CLOCKS_DIFFER_S:
            raise AuthenticationError(
                f"{which} is not valid before {_when(claims.begins_s)}: check the clock of this host, or get "
                f"another one {_GET}"
            )
        return token

    def admission(self, host: str, port: int) -> Admission | None:
        """Return the token for a server as that which lets us in, as far as it says until when.

        Raises as for_host.
        """
        token = self.for_host(host, port)
        until_s = token.claims.expires_s if token else None
        if token is None or until_s is None:
            return None
        return Admission(until_s, f"your token for {host}", token.renewal)

    def how_to_give_one(self, host: str) -> str:
        """Return what to do where a server asks for a token and none was found, with where it was looked."""
        places = ", ".join([_TEXT, _FILE, *map(named, self._usual_files())])
        return (
            f"get a token for {host} {_GET} and name its file with --token-file or {_FILE}; there is none in "
            f"{places}"
        )

    def _in_file(self, path: str, named_by: str) -> BearerToken:
        source = f"{named(path)} ({named_by})"
        text = self._text_of(path)
        if not text:
            raise AuthenticationError(f"no token in {source}: the file is missing or empty; get one {_GET}")
        return _checked(text, source)

    def _text_of(self, path: str, *, in_the_open: bool = False) -> str:
        with self._lock:
            if path not in self._files:
                self._files[path] = TokenFile(path, self._clock, in_the_open=in_the_open)
            return self._files[path].text()

    def _look_again(self) -> None:
        with self._lock:
            for file in self._files.values():
                file.look_again()

    def _usual_files(self) -> list[str]:
        name = f"bt_u{os.geteuid()}"
        folders = (self._environment.get(_RUNTIME, ""), _TMP)
        return [f"{folder}/{name}" for folder in folders if folder.startswith("/")]


def is_sendable(text: str) -> bool:
    """Tell whether a header can carry a text as a token."""
    return len(text) <= LARGEST_BYTES and _SENDABLE.fullmatch(text) is not None


def _checked(text: str, source: str) -> BearerToken:
    """Return a token that a header can carry; raises AuthenticationError, which does not show it."""
    if len(text) > LARGEST_BYTES:
        raise AuthenticationError(
            f"what {source} holds is no token: it is longer than {format_size(LARGEST_BYTES)}; get one {_GET}"
        )
    if not is_sendable(text):
        raise AuthenticationError(
            f"what {source} holds is no token: it has a blank, a line end or another character that no token "
            "has; it is to hold the token alone, without a word before it"
        )
    return BearerToken(text, source)


def _when(seconds: float) -> str:
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        return f"{seconds:g} s after 1970, which no calendar has"
