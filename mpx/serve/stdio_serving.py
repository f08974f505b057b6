"""The server of one copy, at the other end of its ssh connection: who is let in.

Whoever has started it: over its own input and output, over further ssh sessions (lanes, which hand their
connection to this process), and over direct connections inside TLS, where both ends show the one certificate
that the client made for this copy.
"""

import os
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from mpx.endpoints.ftp.extensions import dialing
from mpx.endpoints.ftp.extensions.dialing import CONTROL_PROTOCOL, DATA_PROTOCOL, parse_opening
from mpx.endpoints.ftp.extensions.stdio import DATA, ServeRequest
from mpx.net import tls
from mpx.serve import process
from mpx.serve.audit import Audit
from mpx.serve.rights import OneSecret
from mpx.serve.secure_serving import SecureServing
from mpx.serve.server import Server
from mpx.serve.session import Access
from mpx.serve.tickets import Tickets

_LANE_S = 30.0  # for what a lane says first
_PEER = struct.Struct("=3i")  # struct ucred: process, user, group


@contextmanager
def serving(
    request: ServeRequest, listener: socket.socket, lanes: socket.socket, peer: str
) -> Iterator[Server]:
    """Serve who comes to either socket; `peer`: the address of the client."""
    process.prepare()
    access = Access(OneSecret(request.secret), Tickets(), Audit(None))
    made = context_for(request)
    server = Server(
        "/",
        host=listener.getsockname()[0],
        writable=True,
        secure=SecureServing(lambda: made, access),
        over_ssh=peer,
        home=os.path.expanduser("~"),
        listener=listener,
    )
    with server:
        threading.Thread(
            target=_take_lanes, args=(lanes, server, access), name="mpx-serve-lanes", daemon=True
        ).start()
        try:
            yield server
        finally:
            with suppress(OSError):
                lanes.shutdown(socket.SHUT_RDWR)


def context_for(request: ServeRequest) -> ssl.SSLContext:
    """Return a TLS context that shows the certificate of the copy.

    It takes nobody but who shows the same, or that of a server which is to send to this one; that one still
    needs a ticket, as it has no secret to log in with.
    """
    made = tls.context(server=True, protocols=[CONTROL_PROTOCOL, DATA_PROTOCOL])
    tls.load_pem(made, request.pem)
    if request.guest:
        made.load_verify_locations(cadata=request.guest)
    return made


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
