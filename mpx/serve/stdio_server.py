"""The server of one copy, at the other end of its ssh connection.

It serves all that the account may reach, as ssh does. Whoever has started it is let in: over its own input
and output, over further ssh sessions (lanes, which hand their connection to this process), and over direct
connections inside TLS, where both ends show the one certificate that the client made for this copy. It ends
when the client closes its input.
"""

import ipaddress
import os
import random
import signal
import socket
import ssl
import struct
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from mpx.choices import PortRange, port_range
from mpx.endpoints.ftp.extensions import dialing
from mpx.endpoints.ftp.extensions.dialing import CONTROL_PROTOCOL, DATA_PROTOCOL, parse_opening
from mpx.endpoints.ftp.extensions.stdio import DATA, Ready, ServeRequest, encode_ready
from mpx.errors import UsageError
from mpx.files.socket_folder import new_socket_folder
from mpx.net import tls
from mpx.serve.audit import Audit
from mpx.serve.rights import OneSecret
from mpx.serve.secure_serving import SecureServing
from mpx.serve.server import Server
from mpx.serve.session import Access
from mpx.serve.standard_streams import joined
from mpx.serve.tickets import Tickets

_LANE_S = 30.0  # for what a lane says first
_BACKLOG = 64
_PEER = struct.Struct("=3i")  # struct ucred: process, user, group


def serve(request: ServeRequest, environment: Mapping[str, str] = os.environ) -> None:
    """Serve until standard input ends. Raises UsageError, and SystemExit for a signal that ends it."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)  # else the folder of its socket would stay
    peer, local = _addresses(environment)
    access = Access(OneSecret(request.secret), Tickets(), Audit(None))
    made = _context(request)
    # Else those that a firewall in front of this host lets in, as grid tools are told of them.
    ports = request.ports or port_range(None, "GLOBUS_TCP_PORT_RANGE", environment)
    with _folder() as folder:
        server = _listening(local, ports, SecureServing(lambda: made, access), peer)
        path = f"{folder}/lanes"
        lanes = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with lanes, server:
            lanes.bind(path)
            lanes.listen(_BACKLOG)
            taking = threading.Thread(
                target=_take_lanes, args=(lanes, server, access), name="mpx-serve-lanes", daemon=True
            )
            taking.start()
            streams = joined()
            streams.socket.sendall(encode_ready(Ready(path, server.host, server.port)))
            server.adopt(streams.socket)
            streams.has_input_ended.wait()  # the client has gone, or its ssh
            with suppress(OSError):
                lanes.shutdown(socket.SHUT_RDWR)


def _end(number: int, _: object) -> None:
    raise SystemExit(128 + number)


@contextmanager
def _folder() -> Iterator[str]:
    folder = new_socket_folder("mpx-serve-")
    if folder is None:
        raise UsageError("no folder can be made for a socket, neither below TMPDIR nor in /tmp")
    try:
        yield folder.path
    finally:
        folder.remove()


def _context(request: ServeRequest) -> ssl.SSLContext:
    """Return a context that shows the certificate of the copy.

    It takes nobody but who shows the same, or that of a server which is to send to this one; that one still
    needs a ticket, as it has no secret to log in with.
    """
    made = tls.context(server=True, protocols=[CONTROL_PROTOCOL, DATA_PROTOCOL])
    tls.load_pem(made, request.pem)
    if request.guest:
        made.load_verify_locations(cadata=request.guest)
    return made


def _listening(host: str, ports: PortRange | None, secure: SecureServing, peer: str) -> Server:
    """Return a server that listens at this address, or where that cannot be had on loopback."""
    candidates = (
        [0] if ports is None else random.sample(range(ports[0], ports[1] + 1), ports[1] - ports[0] + 1)
    )
    home = os.path.expanduser("~")
    for where, port in [*((host, port) for port in candidates), ("127.0.0.1", 0)]:
        with suppress(UsageError):
            return Server("/", host=where, port=port, writable=True, secure=secure, over_ssh=peer, home=home)
    raise UsageError("no port can be had to listen on, not even on loopback")


def _addresses(environment: Mapping[str, str]) -> tuple[str, str]:
    """Return the address of the client and ours, as sshd tells them; loopback where it does not."""
    words = environment.get("SSH_CONNECTION", "").split()
    try:
        peer, _, local, _ = words
        return str(ipaddress.ip_address(peer)), str(ipaddress.ip_address(local))
    except ValueError:
        return "127.0.0.1", "127.0.0.1"


# --- lanes ----------------------------------------------------------------


def _take_lanes(lanes: socket.socket, server: Server, access: Access) -> None:
    while True:
        try:
            lane, _ = lanes.accept()
        except OSError:
            return
        threading.Thread(
            target=_take_lane, args=(lane, server, access), name="mpx-serve-lane", daemon=True
        ).start()


def _take_lane(lane: socket.socket, server: Server, access: Access) -> None:
    """Take the connection that a lane passes on; the lane ends when we close our end."""
    with lane, suppress(OSError, ValueError, IndexError):
        _, user, _ = _PEER.unpack(lane.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
        if user != os.geteuid():
            return
        lane.settimeout(_LANE_S)
        use, fds, _, _ = socket.recv_fds(lane, 16, 1)
        with socket.socket(fileno=fds[0]) as sock:
            if use.decode("ascii") == DATA:
                sock.settimeout(_LANE_S)
                opening = parse_opening(_received(sock, dialing.BYTES))
                sock.settimeout(None)
                dialed = access.tickets.find(opening)
                if dialed is not None:
                    dialed.put(socket.socket(fileno=sock.detach()))
            else:
                server.adopt(socket.socket(fileno=sock.detach()))


def _received(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = sock.recv(size - len(data))
        if not piece:
            raise ValueError("a lane has ended before its opening")
        data += piece
    return data
