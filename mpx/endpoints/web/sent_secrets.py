"""What lets us in at a server, as it was sent: the server may repeat it in what people are shown."""

import base64
import binascii
import re
from collections import deque
from collections.abc import Iterator, Mapping
from urllib.parse import quote, unquote, unquote_plus

from mpx.location import secrets_of_query

_NAMES = (
    "Authorization",
    "Proxy-Authorization",
    "TransferHeaderAuthorization",
    "X-Amz-Security-Token",
)
_BASIC = "basic"
_SIGNED = "AWS4-"  # a signature of this request, another one for each
_OF_SIGNED = re.compile(r"\b(?:Credential=([^/, ]+)|Signature=([0-9a-f]+))")  # who signs, and the signature
_MOST_SIGNED = 100  # that are sent before the first is answered
MOST_NOTED = 1000  # more than there are requests whose answers are to come
_INSTEAD = "[secret]"
_SHORTEST = 6  # a shorter one is none, and stands in many a text by chance


class SentSecrets:
    """Those that went over one connection. Used by its thread."""

    def __init__(self) -> None:
        self._headers: dict[str, None] = {}  # the last ones that differ, in the order of their last use
        self._queries: dict[str, None] = {}
        self._signed: deque[str] = deque(maxlen=_MOST_SIGNED)

    def sent(self, headers: Mapping[str, str], target: str = "") -> None:
        """Take note of the secrets of a request, also of those in its target."""
        for name in _NAMES:
            value = headers.get(name)
            if value and value.startswith(_SIGNED):
                self._signed.append(value)
            elif value:
                _note(self._headers, value)
        if query := target.partition("?")[2]:
            _note(self._queries, query)

    def hidden_in(self, text: str) -> str:
        """Return a text of the server's, for people, without them."""
        found = {form for secret in self._secrets() for form in _forms(secret) if len(form) >= _SHORTEST}
        for secret in sorted(found, key=len, reverse=True):  # one may be part of another
            text = text.replace(secret, _INSTEAD)
        return text

    def _secrets(self) -> Iterator[str]:
        for header in self._headers:
            yield from _secrets_of_header(header)
        for signed in self._signed:
            for key, signature in _OF_SIGNED.findall(signed):
                yield key or signature
        for query in self._queries:
            for value in secrets_of_query(query):
                yield value
                yield from _secrets_of_header(unquote_plus(value))  # XRootD leads to ?authz=Bearer%20TOKEN


def _note(noted: dict[str, None], value: str) -> None:
    noted.pop(value, None)
    noted[value] = None
    if len(noted) > MOST_NOTED:
        del noted[next(iter(noted))]


def _secrets_of_header(value: str) -> Iterator[str]:
    """Give what follows a word as Bearer, and the password that Basic carries."""
    words = value.split()
    if not words:
        return
    yield words[-1]
    if words[0].lower() == _BASIC:
        try:
            login = base64.b64decode(words[-1]).decode("utf-8")
        except (binascii.Error, UnicodeDecodeError):
            return
        yield login.partition(":")[2]


def _forms(secret: str) -> Iterator[str]:
    """Give it as it is, as part of a URL, and as a head is read, a character for each byte."""
    for plain in (secret, unquote(secret)):
        yield plain
        yield quote(plain, safe="")
        yield plain.encode("utf-8").decode("latin-1")
