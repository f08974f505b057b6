"""Senders and receivers for measuring a link of the lab: stamped UDP frames, TCP, and echoes.

Each is a process of its own in a network namespace. UDP frames carry when they were sent, and the kernel says
when they came out of the link: two clocks that are independent of the emulator's.
"""

import math
import multiprocessing
import random
import socket
import struct
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Generic, TypeVar

from lab_pair import Pair, entered
from mpx_lab.traffic.with_parent import end_with_parent

PORT = 5000
HOST = "10.0.0.2"  # B's address on the first link of a pair
IDLE_S = 0.5  # longer than anything a link holds
UDP_HEADERS_BYTES = 42  # Ethernet, IPv4, UDP
FULL_UDP_BYTES = 1472  # the payload of a full frame
SO_TIMESTAMPNS = 35  # of asm-generic/socket.h
SO_RCVBUFFORCE = 33
STAMP = struct.Struct("=QQ")  # number, time
ECHO = struct.Struct("!BBHHH")  # of ICMP: type, code, and what the kernel fills in, then the number
ECHO_REQUEST = 8
ECHO_S = 1.0  # one that has not come back by then is lost
ECHO_PAUSE_S = 0.005
TIMESPEC = struct.Struct("=qq")
_forked = multiprocessing.get_context("fork")
Result = TypeVar("Result")


class Running(Generic[Result]):
    """A function that runs in a process in a namespace."""

    def __init__(self, netns: str, function: Callable[..., Result], *args: Any) -> None:
        self._receiving, sending = _forked.Pipe(duplex=False)
        self._process = _forked.Process(
            target=_run, args=(netns, sending, function, args), name=function.__name__, daemon=True
        )
        self._process.start()
        sending.close()
        if self._receiving.recv() != "ready":
            raise RuntimeError(f"{function.__name__} does not start")

    def result(self) -> Result:
        """Wait for its end and return what it found; raises EOFError when it failed."""
        found: Result = self._receiving.recv()
        self._process.join()
        return found


def _run(netns: str, sending: Connection, function: Callable[..., Any], args: Sequence[Any]) -> None:
    end_with_parent()  # or it would keep the lab's lock, writing to a pipe that nobody reads
    with entered(netns):
        sending.send(function(lambda: sending.send("ready"), *args))


@dataclass(frozen=True)
class Arrivals:
    """UDP frames that came, in order of arrival; all times are CLOCK_REALTIME in ns."""

    frame_bytes: int
    numbers: Sequence[int]
    sent_ns: Sequence[int]
    came_ns: Sequence[int]

    def rate_bps(self, skip_s: float) -> float:
        """Return the rate of frame bytes from `skip_s` after the first one to the last."""
        start_ns = self.came_ns[0] + int(skip_s * 1e9)
        times = [at for at in self.came_ns if at >= start_ns]
        return (len(times) - 1) * self.frame_bytes * 8e9 / (times[-1] - times[0])

    def errors_s(self, rate_bps: int, delay_s: float) -> list[float]:
        """Return how much later each frame came than a perfect link would have brought it.

        Of such a link is known: departure = max(sent, departure before) + size / rate, then the delay.
        """
        serial_ns, delay_ns = self.frame_bytes * 8e9 / rate_bps, delay_s * 1e9
        zero_ns, departure_ns = self.sent_ns[0], 0.0  # small numbers, which a float holds exactly enough
        errors = []
        for sent_ns, came_ns in zip(self.sent_ns, self.came_ns, strict=True):
            departure_ns = max(sent_ns - zero_ns, departure_ns) + serial_ns
            errors.append((came_ns - zero_ns - departure_ns - delay_ns) / 1e9)
        return errors


def send_udp(
    ready: Callable[[], None], host: str, rate_bps: float, seconds: float, payload_bytes: int
) -> int:
    """Send stamped frames at a rate of frame bytes; return how many."""
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    sender.connect((host, PORT))
    payload = bytearray(payload_bytes)
    every_ns = (payload_bytes + UDP_HEADERS_BYTES) * 8e9 / rate_bps
    count = int(seconds * 1e9 / every_ns)
    ready()
    began_ns = time.monotonic_ns()
    for number in range(count):
        ahead_ns = began_ns + number * every_ns - time.monotonic_ns()
        if ahead_ns > 0:
            time.sleep(ahead_ns / 1e9)
        STAMP.pack_into(payload, 0, number, time.time_ns())
        sender.send(payload)
    return count


def receive_udp(ready: Callable[[], None], host: str, payload_bytes: int, idle_s: float) -> Arrivals:
    """Take what comes until nothing has come for a while."""
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 28)
    receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    receiver.bind((host, PORT))
    receiver.settimeout(30)
    numbers, sent_ns, came_ns = array("q"), array("q"), array("q")
    ready()
    room = socket.CMSG_SPACE(TIMESPEC.size)
    try:
        while True:
            data, extra, _, _ = receiver.recvmsg(payload_bytes, room)
            if not numbers:
                receiver.settimeout(idle_s)
            seconds, nanoseconds = TIMESPEC.unpack(extra[0][2])
            number, sent = STAMP.unpack_from(data)
            numbers.append(number)
            sent_ns.append(sent)
            came_ns.append(seconds * 1_000_000_000 + nanoseconds)
    except TimeoutError:
        return Arrivals(payload_bytes + UDP_HEADERS_BYTES, numbers, sent_ns, came_ns)


def send_tcp(ready: Callable[[], None], host: str, seconds: float) -> int:
    """Send as fast as it goes; return the bytes."""
    ready()
    block, sent = bytes(1 << 18), 0
    with socket.create_connection((host, PORT)) as sender:
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s:
            sent += sender.send(block)
    return sent


def receive_tcp(ready: Callable[[], None], host: str) -> int:
    """Take one connection to its end; return the bytes."""
    listening = socket.create_server((host, PORT))
    ready()
    connection, _ = listening.accept()
    room, came = bytearray(1 << 20), 0
    while size := connection.recv_into(room):
        came += size
    return came


def echo(ready: Callable[[], None], host: str, seconds: float) -> list[float]:
    """Ask the other kernel for one echo after the other; return how long each took, infinity if it was lost.

    Pauses of any length up to ECHO_PAUSE_S keep the questions from falling in step with a timer.
    """
    asking = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)
    asking.connect((host, 0))
    asking.settimeout(ECHO_S)
    pause, took = random.Random(1), list[float]()
    ready()
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        number = len(took) & 0xFFFF
        asked_s = time.monotonic()
        asking.send(ECHO.pack(ECHO_REQUEST, 0, 0, 0, number))
        try:
            while ECHO.unpack_from(asking.recv(ECHO.size))[4] != number:
                pass  # an answer that was given up
            took.append(time.monotonic() - asked_s)
        except TimeoutError:
            took.append(math.inf)
        time.sleep(pause.uniform(0, ECHO_PAUSE_S))
    return took


def offer_udp(pair: Pair, rate_bps: float, seconds: float) -> tuple[int, Arrivals]:
    """Send full frames over the first link of a pair; return how many, and what came."""
    receiving = Running(pair.netns[1], receive_udp, HOST, FULL_UDP_BYTES, IDLE_S)
    sending = Running(pair.netns[0], send_udp, HOST, rate_bps, seconds, FULL_UDP_BYTES)
    return sending.result(), receiving.result()


def fill_with_tcp(pair: Pair, warm_s: float, seconds: float) -> tuple[float, bool]:
    """Fill the first link of a pair with one stream.

    Return the rate of frame bytes behind the link, as the kernel counts them once `warm_s` have passed, and
    whether all that was sent came.
    """
    receiving = Running(pair.netns[1], receive_tcp, HOST)
    sending = Running(pair.netns[0], send_tcp, HOST, warm_s + seconds + 0.5)
    time.sleep(warm_s)
    before, began_s = pair.received_bytes(0), time.monotonic()
    time.sleep(seconds)
    carried, took_s = pair.received_bytes(0) - before, time.monotonic() - began_s
    return carried * 8 / took_s, sending.result() == receiving.result()
