"""Sockets of the Transmission Control Protocol (TCP): options, and what the kernel tells of them."""

import contextlib
import errno
import fcntl
import ipaddress
import os
import random
import re
import select
import socket
import struct
import termios
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mpx.errors import ConnectionLost, Interrupted, TransferTimeout, UsageError
from mpx.net import mptcp

Address = tuple[str, int]
PortRange = tuple[int, int]  # first and last port, both included

STOP_INTERVAL_S = 0.2  # how often a thread that waits looks whether it is to stop
AVAILABLE_CONGESTION = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
ALLOWED_CONGESTION = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")


@dataclass(frozen=True, slots=True)
class TcpInfo:
    """What the kernel tells of one connection (struct tcp_info); counters since it was opened."""

    bytes_acked: int
    bytes_received: int
    retransmits: int
    rtt_s: float
    least_rtt_s: float
    busy_s: float  # time with data to send
    limited_by_receiver_s: float  # of which held back by the receiver's window
    limited_by_sender_s: float  # of which held back by our send buffer
    window_bytes: int  # what the receiver would take now; 0 where the kernel does not tell (before 5.4)
    delivered_bytes: int  # also beyond what is missing, in whole segments; 0 where not told (before 4.18)


_FIELD = struct.Struct("=I")  # tcpi_rtt at 68, tcpi_total_retrans at 100, tcpi_min_rtt at 148, ...
_SEGMENT_AT, _DELIVERED_AT = 16, 192  # ... tcpi_snd_mss and tcpi_delivered, in segments
_WINDOW_AT = 228  # ... tcpi_snd_wnd
_COUNTERS = struct.Struct("=QQ")  # tcpi_bytes_acked at 120, tcpi_bytes_received
_LIMITS = struct.Struct("=QQQ")  # tcpi_busy_time, tcpi_rwnd_limited, tcpi_sndbuf_limited at 168
_TCP_INFO_BYTES = 192  # at least
_TCP_NOTSENT_LOWAT = 25  # Linux; the socket module has no name for it
_SO_MAX_PACING_RATE = 47  # that one neither
_UNLIMITED_PACE = struct.pack("=Q", 1 << 62)  # byte/s: any limit turns pacing on, none is meant
PACED_RTT_S = 0.005  # over a shorter way bursts are small, and the timers cost more than they bring


def tcp_info(connection: socket.socket) -> TcpInfo | None:
    """Return the kernel's record of a connection, or None when it is closed or the kernel too old.

    Of Multipath TCP bytes are those of all subflows, and all else is that of the first.
    """
    try:
        raw = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _WINDOW_AT + _FIELD.size)
    except OSError:
        return None
    if len(raw) < _TCP_INFO_BYTES:
        return None
    busy, receiver, sender = _LIMITS.unpack_from(raw, 168)
    acked, received = _COUNTERS.unpack_from(raw, 120)
    delivered = _field(raw, _DELIVERED_AT) * _field(raw, _SEGMENT_AT)
    if (whole := mptcp.mptcp_info(connection)) is not None:
        acked = delivered = whole.bytes_acked
        received = whole.bytes_received
    return TcpInfo(
        bytes_acked=acked,
        bytes_received=received,
        retransmits=_FIELD.unpack_from(raw, 100)[0],
        rtt_s=_FIELD.unpack_from(raw, 68)[0] / 1e6,
        least_rtt_s=_FIELD.unpack_from(raw, 148)[0] / 1e6,
        busy_s=busy / 1e6,
        limited_by_receiver_s=receiver / 1e6,
        limited_by_sender_s=sender / 1e6,
        window_bytes=_field(raw, _WINDOW_AT),
        delivered_bytes=delivered,
    )


def _field(raw: bytes, at: int) -> int:
    return int(_FIELD.unpack_from(raw, at)[0]) if len(raw) >= at + _FIELD.size else 0


def congestion_of(connection: socket.socket) -> str:
    """Return the name of the congestion control that this connection uses."""
    raw = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    return raw.split(b"\0", 1)[0].decode()


def set_congestion(connection: socket.socket, name: str) -> None:
    """Switch a connection to the congestion control `name`; open connections may be switched too.

    Raises UsageError if the kernel does not have it or does not permit it to this user.
    """
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
    except FileNotFoundError:
        there = AVAILABLE_CONGESTION.read_text().strip() if AVAILABLE_CONGESTION.exists() else ""
        raise UsageError(
            f"congestion control {name!r} is not in this kernel (there are: {there}); as root: "
            f"modprobe tcp_{name}"
        ) from None
    except PermissionError:
        if is_congestion_fixed(connection):
            raise UsageError(
                f"congestion control {name!r} cannot be had: the route has {congestion_of(connection)} and "
                f"locks it; as root: ip route change ... congctl {name}"
            ) from None
        allowed = ALLOWED_CONGESTION.read_text().strip() if ALLOWED_CONGESTION.exists() else ""
        raise UsageError(
            f"congestion control {name!r} is not permitted to this user (permitted: {allowed}); as root: "
            f'sysctl -w net.ipv4.tcp_allowed_congestion_control="{allowed} {name}"'
        ) from None


def is_congestion_fixed(connection: socket.socket) -> bool:
    """Return whether the route of a connection that is open lets nobody choose (`congctl lock NAME`)."""
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion_of(connection).encode())
    except PermissionError:  # anybody may ask for what is in use, but there
        return True
    except OSError:  # it is closed
        pass
    return False


def limit_unsent(connection: socket.socket, size_bytes: int) -> None:
    """Let the kernel hold at most about `size_bytes` that are not sent yet (TCP_NOTSENT_LOWAT)."""
    connection.setsockopt(socket.IPPROTO_TCP, _TCP_NOTSENT_LOWAT, size_bytes)


def pace(connection: socket.socket) -> None:
    """Have the kernel spread what it sends over each round trip, where that is long, instead of in bursts.

    The bursts with which many streams begin overflow a small queue, and what that costs takes many round
    trips to win back (docs/decisions/0014). Best effort: a kernel without it sends as it always did.
    """
    info = tcp_info(connection)
    if info and info.rtt_s and info.rtt_s >= PACED_RTT_S:
        with contextlib.suppress(OSError):
            limit_pace(connection, None)


def limit_pace(connection: socket.socket, rate_bps: float | None) -> None:
    """Have the kernel send no faster than that from the next packet on; None: as fast as it may.

    Raises OSError for a connection that has ended, and in a kernel that cannot.
    """
    pace = _UNLIMITED_PACE if rate_bps is None else struct.pack("=Q", int(rate_bps / 8))
    connection.setsockopt(socket.SOL_SOCKET, _SO_MAX_PACING_RATE, pace)


def unacknowledged_bytes(connection: socket.socket | None) -> int:
    """Return how much of what was sent the other side has not acknowledged; 0 for a closed connection."""
    if connection is None:
        return 0
    try:
        raw = fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, bytes(4))
    except (OSError, ValueError):
        return 0
    return int(struct.unpack("i", raw)[0])


def check_congestion(name: str) -> None:
    """Raise UsageError unless this user may use the congestion control `name` on a new socket."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        set_congestion(probe, name)


def why_not_congestion(name: str) -> str:
    """Return why this user may not use the congestion control `name`, an empty text where it may."""
    try:
        check_congestion(name)
    except UsageError as error:
        return str(error)
    return ""


def usable_congestion() -> tuple[str, ...]:
    """Return the congestion controls that this kernel has loaded and this user may use."""
    try:
        names = AVAILABLE_CONGESTION.read_text().split()
    except OSError:
        return ()
    found = []
    for name in names:
        with contextlib.suppress(UsageError):
            check_congestion(name)
            found.append(name)
    return tuple(found)


def permitted_congestion() -> tuple[str, ...]:
    """Return the congestion controls that all users of this host may use; root may use more."""
    try:
        return tuple(ALLOWED_CONGESTION.read_text().split())
    except OSError:
        return ()


def family_of(host: str) -> socket.AddressFamily:
    """Return the family of an address."""
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def check_address(host: str) -> None:
    """Raise UsageError unless `host` is an address of this host."""
    try:
        with socket.socket(family_of(host), socket.SOCK_STREAM) as probe:
            probe.bind((ipaddress.ip_address(host).compressed, 0))
    except ValueError:
        raise UsageError(f"{host} is no address; write numbers, as 192.0.2.7 or 2001:db8::7") from None
    except OSError:
        raise UsageError(
            f"{host} is no address of this host, so data cannot use it; see which are: ip address"
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
        (socket.AF_INET, socket.AF_INET6, "-4 cannot be honoured: {} is an IPv6 address"),
        (socket.AF_INET6, socket.AF_INET, "-6 cannot be honoured: {} is an IPv4 address"),
    ):
        if family == asked and _is_address(host, other):
            raise UsageError(text.format(host))
    found: list[tuple[int, Address]] = []
    failed: list[Exception] = []

    def ask() -> None:
        try:
            name = host.encode() if host.isascii() else host  # no codec for it need be imported
            answers = socket.getaddrinfo(name, port, family, socket.SOCK_STREAM)
            found.extend((entry[0], (str(entry[4][0]), port)) for entry in answers)
        except (OSError, UnicodeError) as error:
            failed.append(error)

    asking = threading.Thread(target=ask, name="mpx-resolve", daemon=True)
    try:
        asking.start()
    except RuntimeError:  # no thread is left
        ask()
    while asking.is_alive():
        asking.join(STOP_INTERVAL_S)
        if asking.is_alive() and stop():
            raise Interrupted
    if failed:
        reason = getattr(failed[0], "strerror", None) or failed[0]
        raise ConnectionLost(f"cannot find the host {host!r}: {reason}")
    return found


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

    It has the congestion control that is asked for, unless its route locks another. `bound` is told its port
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
        if congestion:  # now, as some say so in their first packet
            with contextlib.suppress(UsageError):  # the route may have it anyway, which shows only below
                set_congestion(connection, congestion)
        if source[1]:  # what the port was used for last may linger for a minute, which is no obstacle
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
        if error.errno is not None:  # the kernel gave up before we did
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
    """Return the ports to try, in random order so that two copies seldom collide; 0 means any."""
    if ports is None:
        return [0]
    candidates = list(range(ports[0], ports[1] + 1))
    random.shuffle(candidates)
    return candidates


def _none_free(ports: PortRange | None) -> UsageError:
    first, last = ports or (0, 0)
    return UsageError(f"no free port between {first} and {last}; widen the range")


def show(address: Address) -> str:
    """Write an address as people do: host:port, [v6]:port."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_ports(text: str) -> PortRange:
    """Read `40000-41000` or the GCT's `40000,41000`; raises UsageError."""
    first, _, last = text.replace(",", "-").partition("-")
    if all(re.fullmatch(r" *[0-9]{1,5} *", each) for each in (first, last)):
        ports = int(first), int(last)
        if 0 < ports[0] <= ports[1] < 65536:
            return ports
    raise UsageError(f"not a range of ports: {text!r}; write it as 40000-41000")


def ports(given: str | None, variable: str) -> PortRange | None:
    """Return the range given, else that of GLOBUS_TCP_PORT_RANGE or GLOBUS_TCP_SOURCE_RANGE, as the GCT does.

    Raises UsageError.
    """
    text = given or os.environ.get(variable)
    return parse_ports(text) if text else None


def reset(connection: socket.socket) -> None:
    """Close at once, without waiting for what is unsent; wakes a thread that blocks on it."""
    try:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # it was gone already


def receive(
    connection: socket.socket, timeout_s: float, what: str, stop: Callable[[], bool] = lambda: False
) -> bytes:
    """Receive some bytes; empty at the end. Raises TransferTimeout, ConnectionLost or Interrupted."""
    deadline_s = time.monotonic() + timeout_s
    try:
        while not stop():
            connection.settimeout(max(0.001, min(STOP_INTERVAL_S, deadline_s - time.monotonic())))
            try:
                return connection.recv(65536)
            except TimeoutError as error:
                if error.errno is not None:
                    raise  # not our clock: the kernel has given the connection up
                if time.monotonic() >= deadline_s:
                    raise TransferTimeout(f"{what} did not answer within {timeout_s:g} s") from None
    except OSError as error:
        raise ConnectionLost(f"the connection to {what} was lost: {error.strerror or error}") from None
    raise Interrupted
