"""What users write, or have from others: places of files, what is probed, controllers, values with a unit."""

import os

from mpx_controller.rest_client import RestClient

from mpx.errors import UsageError
from mpx.location import parse_location
from mpx.probing.target import location_of, parse_target
from mpx.sdn_client import ControllerClient
from mpx.text import shown
from mpx.units import format_duration, format_rate, format_size, parse_duration, parse_rate, parse_size

SEEDS = [
    b"ftp://user@host.example:2811/a%20b/%ff",
    b"ftp://[fd00::1]:21/~/name",
    b"file:///tmp/a%2Fb",
    b"file://localhost/x",
    b"gsiftp://host/",
    b"ftp://u:p@ss@host/",
    b"host:/name",
    b"me@[fd00::1]:name",
    b"ssh://me@host:22/~/x",
    b"mpx://host/x",
    b"./plain name",
    b"[fd00::1]:2811",
    b"10.0.0.1:2811",
    b"http://127.0.0.1:6680",
    b"https://[::1]:6680/mpx/RPC2",
    b"800Mbit/s",
    b"1.5 GiB",
    b"250ms",
    b"0",
]
ALLOWED = ()
_CONTROL = {chr(code) for code in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x202E, 0x2066)}


def parse(data: bytes) -> None:
    """Read it as each of them; what is a place of a file is written and read again as the same."""
    text = os.fsdecode(data.replace(b"\0", b""))  # no argument holds a NUL
    for read in (_place, _probed, ControllerClient, RestClient, _duration, _rate, _size):
        try:
            read(text)
        except UsageError as error:
            assert len(str(error)) <= 10 * len(text) + 1000
    assert not _CONTROL & set(shown(text))


def _place(text: str) -> None:
    place = parse_location(text)
    if place.scheme != "file":
        assert parse_location(str(place)) == place, (str(place), place)
    if place.scheme in ("ftp", "mpx"):
        assert 0 < place.port < 65536
    if place.scheme == "ssh":
        assert not place.host.startswith("-") and not place.user.startswith("-")


def _probed(text: str) -> None:
    host, port = parse_target(text)
    assert host
    assert 0 < port < 65536
    location_of(text)


def _duration(text: str) -> None:
    format_duration(parse_duration(text))


def _rate(text: str) -> None:
    format_rate(parse_rate(text))


def _size(text: str) -> None:
    format_size(parse_size(text))
