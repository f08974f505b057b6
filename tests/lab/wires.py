"""Raw frames over the first link of a pair, and what tests ask of the emulator."""

import json
import socket
import struct
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

from lab_pair import Pair, entered
from mpx_lab.emulator.accounting import LinkStats, Tally
from mpx_lab.emulator.link import EmulatedLink
from mpx_lab.shape import Shape

Eventually = Callable[..., None]
KIND = 0x88B5  # an EtherType for experiments
FULL = 1514
NUMBER = struct.Struct("!I")
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33
SO_TIMESTAMPNS = 35
STANDSTILL = Shape(rate_bps=1)  # a full frame takes three hours
OPEN = Shape()


class Wire:
    """Raw sockets at both devices of the first link; frames are numbered."""

    def __init__(self, pair: Pair, *, back: bool = False) -> None:
        self._sockets = []
        for netns in pair.netns:
            with entered(netns):
                end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(KIND))
            end.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 27)
            end.bind(("wan0", KIND))
            end.settimeout(30)
            self._sockets.append(end)
        self._sender, self.receiver = reversed(self._sockets) if back else self._sockets
        self._sent = 0

    def close(self) -> None:
        for end in self._sockets:
            end.close()

    def send(self, count: int, size: int = FULL) -> list[bytes]:
        """Send frames and return them."""
        frames = [frame(number, size) for number in range(self._sent, self._sent + count)]
        self._sent += count
        for each in frames:
            self._sender.send(each)
        return frames

    def flood(self, until: threading.Event) -> None:
        """Send as fast as it can."""
        while not until.is_set():
            self._sender.send(frame(0, 60))

    def make_room(self) -> None:
        """Let frames be sent although nobody takes them yet."""
        self._sender.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 27)

    def receive(self, count: int) -> list[bytes]:
        return [self.receiver.recv(65536) for _ in range(count)]


Wired = Callable[..., tuple[EmulatedLink, Wire]]


def frame(number: int, size: int = FULL) -> bytes:
    head = b"\x02\0\0\0\0\x02" + b"\x02\0\0\0\0\x01" + struct.pack("!H", KIND) + NUMBER.pack(number)
    return head + bytes((number + i) % 251 for i in range(size - len(head)))


def numbers(frames: list[bytes]) -> list[int]:
    return [NUMBER.unpack_from(each, 14)[0] for each in frames]


def taken_in(link: EmulatedLink, count: int) -> Callable[[], bool]:
    return lambda: link.stats().a_to_b.received.frames == count


def stopped(link: EmulatedLink) -> Callable[[], bool]:
    return lambda: Path(f"/proc/{link.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def balanced(stats: LinkStats) -> bool:
    return stats.a_to_b.balance == stats.b_to_a.balance == Tally()


def carriers(pair: Pair) -> list[bool]:
    """Whether each device has a carrier."""
    found = []
    for netns in pair.netns:
        with entered(netns):
            shown = subprocess.run(
                ["ip", "-j", "link", "show", "dev", "wan0"], capture_output=True, check=True
            )
        found.append("NO-CARRIER" not in json.loads(shown.stdout)[0]["flags"])
    return found


def devices(pair: Pair) -> list[str]:
    """Every device of both namespaces."""
    found = []
    for netns in pair.netns:
        with entered(netns):
            found += [name for _, name in socket.if_nameindex()]
    return found
