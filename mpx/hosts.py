"""Hosts as options name them: HOST, HOST:PORT, or *.DOMAIN for every host of a domain. Pure."""

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass

from mpx.errors import UsageError
from mpx.host_names import ascii_host
from mpx.text import quoted

_NAMED = re.compile(
    r"(?P<host>(?:\*\.)?[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_.])?|\[[0-9A-Fa-f:.]+\])"
    r"(?::(?P<port>[0-9]{1,5}))?",
    re.ASCII,
)
_ALL_OF = "*."


@dataclass(frozen=True, slots=True)
class HostPattern:
    """Which servers an option is about."""

    host: str  # in small letters; *.DOMAIN: every host below DOMAIN
    port: int = 0  # 0: every port

    def covers(self, host: str, port: int) -> bool:
        """Tell whether a server is among them."""
        if self.port not in (0, port):
            return False
        name = _plain(host)
        if self.host.startswith(_ALL_OF):
            return name.endswith(self.host[1:]) and len(name) >= len(self.host)
        return name == self.host

    @property
    def narrowness(self) -> tuple[bool, bool, int]:
        """What is larger for a pattern that is about fewer servers."""
        return not self.host.startswith(_ALL_OF), self.port > 0, len(self.host)


@dataclass(frozen=True, slots=True)
class TokenFileChoice:
    """A file with a token, and for whom it is."""

    file: str
    of: HostPattern | None = None  # None: for every server


def parse_host(text: str) -> HostPattern:
    """Read HOST, HOST:PORT or *.DOMAIN; raises UsageError."""
    host, colon, port = text.partition(":")
    found = _NAMED.fullmatch(text if text.isascii() else f"{ascii_host(host)}{colon}{port}")
    if not found or (found["port"] and not 0 < int(found["port"]) < 65536):
        raise UsageError(
            f"{quoted(text)} is not a host; write it as dtn.example.org, dtn.example.org:8443, [2001:db8::1] "
            "or *.example.org"
        )
    return HostPattern(_plain(found["host"]), int(found["port"] or 0))


def parse_hosts(texts: Iterable[str]) -> tuple[HostPattern, ...]:
    """Read several; raises UsageError."""
    return tuple(map(parse_host, texts))


def parse_token_file(text: str) -> TokenFileChoice:
    """Read FILE, or HOST=FILE; raises UsageError. What has a slash before its = is a FILE."""
    before, equals, file = text.partition("=")
    is_for_all = not equals or "/" in before
    if is_for_all:
        file = text
    if not file or "\0" in file:
        raise UsageError(f"{quoted(text)} names no file; write FILE, or HOST=FILE")
    return TokenFileChoice(file, None if is_for_all else parse_host(before))


def parse_token_files(texts: Iterable[str]) -> tuple[TokenFileChoice, ...]:
    """Read several, and return them in the order in which they are to be tried; raises UsageError."""
    found: dict[HostPattern | None, TokenFileChoice] = {}
    for text in texts:
        choice = parse_token_file(text)
        if other := found.get(choice.of):
            raise UsageError(
                f"{quoted(other.file)} and {quoted(choice.file)} are for the same host; leave one out"
            )
        found[choice.of] = choice
    return tuple(sorted(found.values(), key=_narrowness, reverse=True))


def _narrowness(choice: TokenFileChoice) -> tuple[bool, bool, int]:
    return choice.of.narrowness if choice.of else (False, False, 0)


def _plain(host: str) -> str:
    """Return a host as it is compared: one address of IPv6 may be written in several ways."""
    name = host.removeprefix("[").removesuffix("]").lower().rstrip(".")
    try:
        return str(ipaddress.IPv6Address(name))
    except ValueError:
        return name
