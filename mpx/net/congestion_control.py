"""Congestion control of TCP sockets: those of this kernel, those permitted, and setting one."""

import contextlib
import socket
from pathlib import Path

from mpx.errors import UsageError

AVAILABLE_CONGESTION = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
ALLOWED_CONGESTION = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")


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
            f"congestion control {name!r} is not in this kernel (available: {there}); if it has the "
            f"module, as root: modprobe tcp_{name}"
        ) from None
    except PermissionError:
        if is_congestion_fixed(connection):
            raise UsageError(
                f"congestion control {name!r} is refused: the route has {congestion_of(connection)} and "
                f"locks it; as root: ip route change ... congctl {name}"
            ) from None
        allowed = ALLOWED_CONGESTION.read_text().strip() if ALLOWED_CONGESTION.exists() else ""
        raise UsageError(
            f"congestion control {name!r} is not permitted to this user (permitted: {allowed}); as root: "
            f'sysctl -w net.ipv4.tcp_allowed_congestion_control="{allowed} {name}"'
        ) from None


def is_congestion_fixed(connection: socket.socket) -> bool:
    """Return whether the route of an open connection locks its congestion control (`congctl lock NAME`)."""
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion_of(connection).encode())
    except PermissionError:  # setting the present one is permitted otherwise
        return True
    except OSError:  # it is closed
        pass
    return False


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
