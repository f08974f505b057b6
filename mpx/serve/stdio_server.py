"""The server of one copy, at the other end of its ssh connection: its beginning and its end.

It serves all that the account may reach, as ssh does, until the client closes its input. As soon as it
listens it says so, and loads the rest (stdio_serving.py) while that is on its way to the client.
"""

import os
import signal
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from mpx.choices import PortRange, port_range
from mpx.endpoints.ftp.extensions.stdio import Ready, ServeRequest, encode_ready
from mpx.errors import UsageError
from mpx.files.socket_folder import new_socket_folder
from mpx.serve.listener import listen
from mpx.serve.standard_streams import joined

_BACKLOG = 64  # of lanes


def serve(request: ServeRequest, environment: Mapping[str, str] = os.environ) -> None:
    """Serve until standard input ends. Raises UsageError, and SystemExit for a signal that ends it."""
    _check_python()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)  # else the folder of its socket would stay
    peer, local = _addresses(environment)
    # Else those that a firewall in front of this host lets in, as grid tools are told of them.
    ports = request.ports or port_range(None, "GLOBUS_TCP_PORT_RANGE", environment)
    with _folder() as folder, _listening(local, ports) as listener:
        path = f"{folder}/lanes"
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as lanes:
            lanes.bind(path)
            lanes.listen(_BACKLOG)
            streams = joined()
            streams.socket.sendall(encode_ready(Ready(path, *listener.getsockname()[:2])))

            from mpx.serve.stdio_serving import serving

            with serving(request, listener, lanes, peer) as server:
                server.adopt(streams.socket)
                streams.has_input_ended.wait()  # the client has gone, or its ssh


def _check_python() -> None:
    """Raise UsageError where the rest cannot be loaded, as Python is often built without what it needs.

    Once this has said that it serves, a client looks for nothing else at this host.
    """
    try:
        import _ctypes  # noqa: F401  without what stands on it, which takes long
        from _ssl import HAS_TLSv1_3
    except ImportError as error:
        raise UsageError(f"the Python at this host lacks a part: {error}") from None
    if not HAS_TLSv1_3:
        raise UsageError("the Python at this host has no TLS 1.3; another one is needed")


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


def _listening(host: str, ports: PortRange | None) -> socket.socket:
    """Return what listens at this address, or where that cannot be had on loopback."""
    for where, port in [*((host, port) for port in _in_any_order(ports)), ("127.0.0.1", 0)]:
        with suppress(OSError):
            return listen(where, port, over_mptcp=True)
    raise UsageError("no port can be had to listen on, not even on loopback")


def _in_any_order(ports: PortRange | None) -> list[int]:
    """Return the ports of a range, so that servers of several copies rarely ask for the same; 0 for any."""
    if ports is None:
        return [0]
    import random

    return random.sample(range(ports[0], ports[1] + 1), ports[1] - ports[0] + 1)


def _addresses(environment: Mapping[str, str]) -> tuple[str, str]:
    """Return the address of the client and ours, as sshd tells them; loopback where it does not."""
    words = environment.get("SSH_CONNECTION", "").split()
    if len(words) != 4:
        return "127.0.0.1", "127.0.0.1"
    peer, _, local, _ = words
    try:
        for address in (peer, local):
            socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address.partition("%")[0])
    except OSError:
        return "127.0.0.1", "127.0.0.1"
    return peer, local
