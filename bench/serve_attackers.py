"""Attackers of `mpx serve`: each function attacks until its process is killed.

They are given the port, and a counter of what they did, so that an attack that did nothing is noticed. A
server that closes their connections does not stop them: they connect again.
"""

import contextlib
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Protocol

from raw_client import RawClient, block, connect, end

MANY_NAMES = 20_000  # in the folder "many"
BIG_BYTES = 1 << 34  # of the file "big", which is all hole
SESSIONS = 32  # that an attacker opens where many do more harm than one
DATA_CONNECTIONS, PER_SESSION = 800, 200
_PAUSE_S = 0.01


class Counter(Protocol):
    """A number in memory that processes share."""

    value: int


Attack = Callable[[int, Counter], None]


@contextlib.contextmanager
def _lost_is_fine() -> Iterator[None]:
    """Go on after a connection that the server has closed, or did not accept."""
    try:
        yield
    except (OSError, EOFError, AssertionError, ValueError):
        time.sleep(_PAUSE_S)


def _in_threads(count: int, work: Callable[[int], None]) -> None:
    """Do `work` over and over in threads; it is given the number of its thread."""

    def forever(number: int) -> None:
        while True:
            with _lost_is_fine():
                work(number)

    for number in range(count):
        threading.Thread(target=forever, args=(number,), daemon=True).start()
    threading.Event().wait()


def options(port: int, tries: Counter) -> None:
    """Send an OPTS of 32 KiB before login, again and again."""

    def attack(_: int) -> None:
        with RawClient(port, login=False) as client:
            client.send("OPTS RETR " + "a" * 32_000)
            client.reply()
            tries.value += 1

    _in_threads(4, attack)


def blocks(port: int, tries: Counter) -> None:
    """Store blocks of one byte, two bytes apart, while no marker is due."""
    some = 2000

    def attack(number: int) -> None:
        with RawClient(port) as client:
            client.do("TREV RESTART 99999")
            address = client.mode_e()
            client.send(f"STOR blocks{number}")
            with connect(address) as sock:
                for first in itertools.count(0, some):
                    sock.sendall(b"".join(block(2 * i, b"x") for i in range(first, first + some)))
                    tries.value += some

    _in_threads(4, attack)


def blocks_over_many(port: int, tries: Counter) -> None:
    """Do the same over 16 connections of each of 8 sessions."""
    some = 200
    content = b"".join(block(2 * i, b"x") for i in range(some))

    def attack(number: int) -> None:
        with RawClient(port) as client, contextlib.ExitStack() as held:
            address = client.mode_e()
            client.send(f"STOR blocks{number}")
            socks = [held.enter_context(connect(address)) for _ in range(16)]
            while True:
                for sock in socks:
                    sock.sendall(content)
                    tries.value += some

    _in_threads(8, attack)


def connections(port: int, tries: Counter) -> None:
    """Open 800 data connections, each of which carries the first half of a block, and hold them."""

    def attack(number: int) -> None:
        with RawClient(port) as client, contextlib.ExitStack() as held:
            address = client.mode_e()
            client.send(f"STOR connections{number}")
            for i in range(PER_SESSION):
                sock = held.enter_context(connect(address))
                sock.sendall(block(i << 21, bytes(2 << 20))[: 1 << 20])
                tries.value += 1
            threading.Event().wait()

    _in_threads(DATA_CONNECTIONS // PER_SESSION, attack)


def queued(port: int, tries: Counter) -> None:
    """Let commands wait behind a store, some at once and then byte by byte; abort it and begin again."""

    def attack(number: int) -> None:
        with RawClient(port) as client:
            address = client.mode_e()
            client.send(f"STOR queued{number}")
            with connect(address) as sock:
                sock.sendall(block(0, b"abc"))
                client.sock.sendall(b"NOOP\r\n" * 800)
                for _ in range(1000):
                    client.sock.sendall(b"x")
                    tries.value += 1
                client.sock.sendall(b"\r\nABOR\r\n")
                while client.reply().code != 426:
                    pass
            for _ in range(802):
                client.reply()

    _in_threads(SESSIONS, attack)


def idle(port: int, tries: Counter) -> None:
    """Keep 200 connections open and never log in."""

    def attack(_: int) -> None:
        with connect(("127.0.0.1", port)) as sock:
            tries.value += 1
            while sock.recv(100):
                pass
            raise ConnectionError

    _in_threads(200, attack)


def dripping(port: int, tries: Counter) -> None:
    """Keep 200 connections open, never log in, and send a byte of a command now and then."""

    def attack(_: int) -> None:
        with connect(("127.0.0.1", port)) as sock:
            sock.recv(100)
            sock.settimeout(0.5)
            while True:
                sock.sendall(b"a")
                tries.value += 1
                with contextlib.suppress(TimeoutError):
                    if not sock.recv(100):
                        raise ConnectionError

    _in_threads(200, attack)


def small_commands(port: int, tries: Counter) -> None:
    """Send commands of one byte without end in many sessions, and read the answers."""

    def attack(_: int) -> None:
        with RawClient(port) as client:
            while True:
                client.sock.sendall(b"X\n" * 100)
                tries.value += 100
                for _ in range(100):
                    client.reply()

    _in_threads(SESSIONS, attack)


def unread_listings(port: int, tries: Counter) -> None:
    """Ask for a long listing in many sessions, over data connections and MLSC; read next to nothing."""

    def attack(number: int) -> None:
        with RawClient(port) as client:
            if number % 2:
                with connect(client.passive()) as sock:
                    client.send("MLSR /")
                    sock.recv(100)
                    tries.value += 1
                    time.sleep(1)
            else:
                client.sock.sendall(b"MLSC many\r\n" * 100)
                tries.value += 1
                time.sleep(1)

    _in_threads(SESSIONS, attack)


def read_listings(port: int, tries: Counter) -> None:
    """Ask for a long listing in many sessions and read it, again and again."""

    def attack(_: int) -> None:
        with RawClient(port) as client:
            while True:
                client.retrieve("MLSD many")
                tries.value += 1

    _in_threads(SESSIONS, attack)


def slow_readers(port: int, tries: Counter) -> None:
    """Retrieve a large file in many sessions and read a little of it now and then."""

    def attack(_: int) -> None:
        with RawClient(port) as client, connect(client.passive()) as sock:
            client.send("RETR big")
            while sock.recv(1000):
                tries.value += 1
                time.sleep(0.1)

    _in_threads(SESSIONS, attack)


def logins(port: int, tries: Counter) -> None:
    """Log in and leave, as fast as it goes."""

    def attack(_: int) -> None:
        with RawClient(port):
            tries.value += 1

    _in_threads(8, attack)


def idle_logins(port: int, tries: Counter) -> None:
    """Log in 200 times and keep the sessions open."""

    def attack(_: int) -> None:
        with RawClient(port) as client:
            tries.value += 1
            client.any_reply()

    _in_threads(200, attack)


def short_connections(port: int, tries: Counter) -> None:
    """Open and close data connections of a store without end."""

    def attack(number: int) -> None:
        with RawClient(port) as client:
            address = client.mode_e()
            client.send(f"STOR short{number}")
            while True:
                with connect(address) as sock:
                    sock.sendall(end())
                tries.value += 1

    _in_threads(8, attack)


def checksums(port: int, tries: Counter) -> None:
    """Ask for the slowest checksum of a large file in many sessions."""

    def attack(_: int) -> None:
        with RawClient(port) as client:
            client.sock.settimeout(None)
            while True:
                client.send("CKSM SHA512 0 -1 big")
                tries.value += 1
                client.reply()

    _in_threads(SESSIONS, attack)


ATTACKS: dict[str, Attack] = {
    "OPTS of 32 KiB before login": options,
    "blocks of 1 byte, 4 sessions": blocks,
    "blocks of 1 byte, 128 connections": blocks_over_many,
    "800 data connections": connections,
    "commands behind a transfer": queued,
    "200 idle sockets before login": idle,
    "200 dripping sockets before login": dripping,
    "commands of 1 byte": small_commands,
    "listings that nobody reads": unread_listings,
    "listings that are read": read_listings,
    "slow readers": slow_readers,
    "login flood": logins,
    "200 idle logins": idle_logins,
    "data connections come and go": short_connections,
    "checksums of a large file": checksums,
}


def run(name: str, port: int, tries: Counter) -> None:
    """Attack until killed, with what the good client and the server leave of this machine's processors."""
    os.nice(19)
    ATTACKS[name](port, tries)
