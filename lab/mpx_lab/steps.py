"""The steps of which a lab is built, as values: each makes one thing, and `builder.py` does it."""

from collections.abc import Iterator
from dataclasses import dataclass

from mpx_lab.shape import PAUSE_S, Shape

SWITCHES = "switches"  # the namespace of all switches of a lab; no host may be called so


@dataclass(frozen=True)
class Controller:
    """Address of the controller for switches, and its URLs for programs."""

    host: str
    port: int
    rest: str | None = None
    xmlrpc: str | None = None
    own: bool = False  # the lab runs it itself; see own_controller.py


@dataclass(frozen=True)
class AddNamespace:
    """A network namespace, with settings below /proc/sys."""

    netns: str
    settings: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class StartDatabase:
    """The private database of the switches."""

    netns: str


@dataclass(frozen=True)
class StartSwitches:
    """The private switch daemon."""

    netns: str


@dataclass(frozen=True)
class StartRelay:
    """The relay from the switches' namespace to a controller outside."""

    controller: Controller


@dataclass(frozen=True)
class StartController:
    """The lab's own controller."""

    netns: str


@dataclass(frozen=True)
class Ip:
    """Lines for `ip -batch` in a namespace."""

    netns: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class PlainFrames:
    """A device without offloads, so that frames are as on a wire."""

    netns: str
    device: str


@dataclass(frozen=True)
class StartLink:
    """An emulated link; `a` and `b` are namespace, device and hardware address."""

    name: str
    a: tuple[str, str, str | None]
    b: tuple[str, str, str | None]
    a_to_b: Shape
    b_to_a: Shape
    pause_s: float = PAUSE_S


@dataclass(frozen=True)
class Configure:
    """One transaction of `ovs-vsctl`."""

    arguments: tuple[str, ...]


@dataclass(frozen=True)
class WriteFile:
    """A file of the lab's folder."""

    name: str
    text: str


@dataclass(frozen=True)
class WaitReachable:
    """Waits until datagrams have passed between all pairs: (namespace, address) each."""

    pairs: tuple[tuple[tuple[str, str], tuple[str, str]], ...]
    within_s: float


@dataclass(frozen=True)
class WaitFound:
    """Waits until the lab's own controller knows so many links (one per direction) and the addresses."""

    netns: str
    links: int
    addresses: tuple[str, ...]
    within_s: float


Step = (
    AddNamespace
    | StartDatabase
    | StartSwitches
    | StartRelay
    | StartController
    | Ip
    | PlainFrames
    | StartLink
    | Configure
    | WriteFile
    | WaitReachable
    | WaitFound
)


def netns_name(lab_id: str, host: str) -> str:
    """Return the namespace of a host; a dot cannot be in an ID, so no lab's prefix begins another's."""
    return f"mpxlab.{lab_id}.{host}"


def cable(a: tuple[str, str, str | None], b: tuple[str, str, str | None]) -> Iterator[Step]:
    """Yield the steps of a plain cable between two ends: namespace, device, hardware address (None: any)."""
    address = [f" address {mac}" if mac else "" for _, _, mac in (a, b)]
    yield Ip(
        a[0],
        (
            f"link add {a[1]}{address[0]} mtu 1500 type veth "
            f"peer name {b[1]}{address[1]} mtu 1500 netns {b[0]}",
        ),
    )
    for netns, device, _ in (a, b):
        yield PlainFrames(netns, device)
        yield Ip(netns, (f"link set {device} txqueuelen 10000 up",))
