"""Sockets of the Transmission Control Protocol (TCP): addresses, ports, connecting, listening, receiving."""

import contextlib
import errno
import ipaddress
import os
import random
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from mpx.choices import PortRange
from mpx.errors import ConnectionLost, Interrupted, TransferTimeout, UsageError
from mpx.net import mptcp
from mpx.net.congestion_control import congestion_of, is_congestion_fixed, set_congestion
from mpx.net.pacing import pace

Address = tuple[str, int]

STOP_INTERVAL_S = 0.2  # how often a waiting thread checks whether it is to stop


def family_of(host: str) -> socket.AddressFamily:
    """Return the family of an address."""
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def check_address(host: str) -> None:
    """Raise UsageError unless `host` is an address of this host."""
    try:
        with socket.socket(family_of(host), socket.SOCK_STREAM) as probe:
            probe.bind((ipaddress.ip_address(host).compressed, 0))
    except ValueError:
        raise UsageError(f"{host} is not an address; write numbers, as 192.0.2.7 or 2001:db8::7") from None
    except OSError:
        raise UsageError(
            f"{host} is not an address of this host, so data cannot use it; list them with: ip address"
        ) from None


def check_free(host: str, ports: PortRange) -> None:
    """Raise UsageError unless a connection can come from one of these ports."""
    for port in _shuffled(ports):
        with contextlib.suppress(OSError), socket.socket(family_of(host), socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
            return
    raise _none_free(ports)


def _is_address(host: str, family: socket.AddressFamily) -> bool:
    try:
        socket.inet_pton(family, host.partition("%")[0])
    except (OSError, ValueError):
        return False
    return True


def resolve(
    host: str, port: int, family: int, stop: Callable[[], bool] = lambda: False
) -> list[tuple[int, Address]]:
    """Return (family, address) pairs to try in order.

    Raises UsageError for an address of another family, ConnectionLost if the name is unknown, Interrupted
    soon after `stop` says so: the resolver itself cannot be interrupted, so it runs in a thread.
    """
    for asked, other, text in (
        (socket.AF_INET, socket.AF_INET6, "-4 is not possible here: {} is an IPv6 address"),
        (socket.AF_INET6, socket.AF_INET, "-6 is not possible here: {} is an IPv4 address"),
    ):
        if family == asked and _is_address(host, other):
            raise UsageError(text.format(host))
    found: list[tuple[int, Address]] = []
    failed: list[Exception] = []

    def ask() -> None:
        try:
            name = host.encode() if host.isascii() else host  # so that no codec is imported
            answers = socket.getaddrinfo(name, port, family, socket.SOCK_STREAM)
            found.extend((entry[0], (_with_zone(entry[4]), port)) for entry in answers)
        except (OSError, UnicodeError) as error:
            failed.append(error)

    asking = threading.Thread(target=ask, name="mpx-resolve", daemon=True)
    try:
        asking.start()
    except RuntimeError:  # no thread can be started
        ask()
    while asking.is_alive():
        asking.join(STOP_INTERVAL_S)
        if asking.is_alive() and stop():
            raise Interrupted
    if failed:
        reason = getattr(failed[0], "strerror", None) or failed[0]
        raise ConnectionLost(f"cannot find the host {host!r}: {reason}")
    return found


def _with_zone(address: tuple[Any, ...]) -> str:
    """Return the address of a socket address, with the interface that one of IPv6 may need (fe80::1%2)."""
    host, zone = str(address[0]), address[3] if len(address) > 3 else 0
    return f"{host.partition('%')[0]}%{zone}" if zone else host


def connect(
    address: Address,
    timeout_s: float,
    *,
    source_ports: PortRange | None = None,
    source_host: str | None = None,
    congestion: str | None = None,
    paced: bool = False,
    over_mptcp: bool = False,
    bound: Callable[[int], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> socket.socket:
    """Open a connection, blocking afterwards, without Nagle's delay; `paced` as `pace` does.

    It has the congestion control that is asked for, unless its route locks another. `bound` gets its port
    before the first packet goes out. `over_mptcp`: of Multipath TCP, if the peer speaks it.

    Raises ConnectionLost when refused or unreachable (no answer in time counts as that), Interrupted
    soon after `stop` says so, and UsageError when every port of `source_ports` is in use, or the congestion
    control is neither permitted nor the route's.
    """
    family = family_of(address[0])
    for port in _shuffled(source_ports):
        try:
            connection = mptcp.socket_for(family) if over_mptcp else socket.socket(family, socket.SOCK_STREAM)
            source = source_host or "", port
            _connect_from(connection, source, address, timeout_s, congestion, bound, stop)
        except OSError as error:
            if source_ports and error.errno in (errno.EADDRINUSE, errno.EADDRNOTAVAIL):
                continue
            raise ConnectionLost(f"cannot connect to {show(address)}: {error.strerror or error}") from None
        if paced:
            pace(connection)
        return connection
    raise _none_free(source_ports)


def is_open(connection: socket.socket) -> bool:
    """Tell whether the other side still holds a connection open; from any thread, and nothing is read."""
    poll = select.poll()
    try:
        poll.register(connection, select.POLLRDHUP)
    except ValueError:  # we have closed it
        return False
    return not poll.poll(0)


def _connect_from(
    connection: socket.socket,
    source: Address,
    address: Address,
    timeout_s: float,
    congestion: str | None,
    bound: Callable[[int], None] | None,
    stop: Callable[[], bool],
) -> None:
    """As `connect`, from one address and port of ours (0: any); raises OSError too. Closed if it fails."""
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if congestion:  # now, as some announce it in their first packet
            with contextlib.suppress(UsageError):  # the route may set it, which is checked below
                set_congestion(connection, congestion)
        if source[1]:  # an earlier connection of the port may be in TIME_WAIT, which is no obstacle
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if source != ("", 0) or bound:
            connection.bind(source)
        if bound:
            bound(int(connection.getsockname()[1]))
        connection.setblocking(False)
        failed = connection.connect_ex(address)
        if failed == errno.EINPROGRESS:
            _await_connected(connection, timeout_s, stop)
            failed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if failed:
            raise OSError(failed, os.strerror(failed))
        has_another = congestion and congestion_of(connection) != congestion  # the route's or the kernel's
        if congestion and has_another and not is_congestion_fixed(connection):
            set_congestion(connection, congestion)
        connection.setblocking(True)
    except TimeoutError as error:
        connection.close()
        if error.errno is not None:  # the kernel has timed out before us
            raise
        raise ConnectionLost(f"no answer from {show(address)} within {timeout_s:g} s") from None
    except BaseException:
        connection.close()
        raise


def _await_connected(connection: socket.socket, timeout_s: float, stop: Callable[[], bool]) -> None:
    """Wait for the answer to a connect; raises TimeoutError or Interrupted."""
    poll = select.poll()
    poll.register(connection, select.POLLOUT)
    deadline_s = time.monotonic() + timeout_s
    while not poll.poll(1000 * min(STOP_INTERVAL_S, max(0.0, deadline_s - time.monotonic()))):
        if stop():
            raise Interrupted
        if time.monotonic() >= deadline_s:
            raise TimeoutError


def listen(host: str, ports: PortRange | None, *, over_mptcp: bool = False) -> socket.socket:
    """Listen on `host`, on a port of `ports` if given; raises UsageError if none is free.

    `over_mptcp`: who connects may speak Multipath TCP. Others are as without it.
    """
    family = family_of(host)
    try:
        for port in _shuffled(ports):
            listener = mptcp.socket_for(family) if over_mptcp else socket.socket(family, socket.SOCK_STREAM)
            try:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.bind((host, port))
                listener.listen(512)
            except OSError as error:
                listener.close()
                if ports is None or error.errno != errno.EADDRINUSE:
                    raise
            else:
                return listener
    except OSError as error:
        raise UsageError(f"cannot listen on {host}: {error.strerror or error}") from None
    raise _none_free(ports)


def _shuffled(ports: PortRange | None) -> list[int]:
    """Return the ports to try, in random order so that two copies rarely collide; 0 means any."""
    if ports is None:
        return [0]
    candidates = list(range(ports[0], ports[1] + 1))
    random.shuffle(candidates)
    return candidates


def _none_free(ports: PortRange | None) -> UsageError:
    first, last = ports or (0, 0)
    return UsageError(f"no free port between {first} and {last}; widen the range")


def show(address: Address) -> str:
    """Return an address as text: host:port, [v6]:port."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@contextlib.contextmanager
def corked(connection: socket.socket) -> Iterator[None]:
    """Have what is sent meanwhile leave in full segments, the rest of it at the end."""
    with contextlib.suppress(OSError):  # the connection has ended, as whoever sends is told
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)


def reset(connection: socket.socket) -> None:
    """Close at once, dropping unsent data; wakes a thread that blocks on the socket."""
    try:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # it was closed already


def receive(
    connection: socket.socket,
    timeout_s: float,
    what: str,
    stop: Callable[[], bool] = lambda: False,
    most: int = 65536,
) -> bytes:
    """Receive some bytes, `most` of them; empty at the end.

    Raises TransferTimeout, ConnectionLost or Interrupted.
    """
    deadline_s = time.monotonic() + timeout_s
    try:
        while not stop():
            connection.settimeout(max(0.001, min(STOP_INTERVAL_S, deadline_s - time.monotonic())))
            try:
                return connection.recv(most)
            except TimeoutError as error:
                if error.errno is not None:
                    raise  # not our timeout: that of the kernel
                if time.monotonic() >= deadline_s:
                    raise TransferTimeout(f"{what} did not answer within {timeout_s:g} s") from None
    except OSError as error:
        raise ConnectionLost(f"the connection to {what} was lost: {error.strerror or error}") from None
    raise Interrupted
