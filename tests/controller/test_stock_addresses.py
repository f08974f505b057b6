"""Which addresses `mpx controller run` and `assign` take for hosts that are named."""

import socket

import pytest
from mpx_controller.stock.commands import _addresses

from mpx.errors import UsageError

KNOWN = {"both": ["fd00::1", "10.0.0.1"], "old": ["10.0.0.2"], "new": ["fd00::3"], "other": ["fd00::4"]}


@pytest.fixture(autouse=True)
def resolver(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(name: str, *_: object, **__: object) -> list[tuple[object, ...]]:
        kinds = [(socket.AF_INET6 if ":" in each else socket.AF_INET, each) for each in KNOWN[name]]
        return [(family, socket.SOCK_STREAM, 6, "", (address, 0)) for family, address in kinds]

    monkeypatch.setattr(socket, "getaddrinfo", find)


@pytest.mark.parametrize(
    ("source", "sink", "found"),
    [
        ("both", "both", ("10.0.0.1", "10.0.0.1")),  # as who asks is mostly known by that
        ("both", "old", ("10.0.0.1", "10.0.0.2")),
        ("new", "both", ("fd00::3", "fd00::1")),
        ("new", "other", ("fd00::3", "fd00::4")),
    ],
)
def test_both_are_of_one_kind(source: str, sink: str, found: tuple[str, str]) -> None:
    assert _addresses(source, sink) == found


def test_hosts_without_one_kind_in_common_are_refused() -> None:
    with pytest.raises(UsageError, match="no addresses of the same family"):
        _addresses("old", "new")
