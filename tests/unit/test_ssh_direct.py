"""The way to our own server beside ssh: a connection for data is there before it is wanted."""

import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from mpx.endpoints.ftp.extensions.dialing import CONTROL_PROTOCOL, DATA_PROTOCOL
from mpx.endpoints.ftp.extensions.stdio import Ready
from mpx.endpoints.ftp.ssh.certificates import CopyCertificates
from mpx.endpoints.ftp.ssh.direct import DirectWay
from mpx.net import tls
from mpx.net.dial import Dial
from mpx.net.self_signed import self_signed
from mpx.serve.audit import Audit
from mpx.serve.rights import OneSecret
from mpx.serve.secure_serving import SecureServing
from mpx.serve.server import Server
from mpx.serve.session import Access
from mpx.serve.tickets import Tickets

HOST = "127.0.0.1"
WITHIN_S = 60.0


def pem() -> str:
    certificate, key = self_signed("here", timedelta(days=1))
    return (certificate + key).decode()


@contextmanager
def way_to(shown: str, believed: str) -> Iterator[DirectWay]:
    """The way to a server that shows one certificate and believes another; we have the former."""
    made = tls.context(server=True, protocols=[CONTROL_PROTOCOL, DATA_PROTOCOL])
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(shown)
        file.flush()
        made.load_cert_chain(file.name)
    made.load_verify_locations(cadata=believed[: believed.index("-----BEGIN PRIVATE")])
    made.verify_mode = ssl.CERT_REQUIRED
    access = Access(OneSecret("secret"), Tickets(), Audit(None))
    with Server("/", host=HOST, port=0, secure=SecureServing(lambda: made, access), over_ssh=HOST) as server:
        way = DirectWay("there", HOST, CopyCertificates(shown, ""), Ready("", HOST, server.port))
        way.start(WITHIN_S)
        assert way.was_tried.wait(WITHIN_S)
        yield way
        way.close()


def data(way: DirectWay, dial: Dial) -> tls.TlsSocket:
    found = way.data(dial, WITHIN_S, lambda: False)
    assert found
    return found


def test_a_connection_is_there_before_it_is_wanted_and_is_used_once() -> None:
    ours, ports = pem(), []
    with way_to(ours, ours) as way:
        assert way._ahead
        _, ahead = way._ahead
        with data(way, Dial(WITHIN_S, bound=ports.append)) as steered:
            assert steered is not ahead
            assert ports == [steered.getsockname()[1]]
        with data(way, Dial(WITHIN_S, congestion="cubic", paced=True)) as first:
            assert first is ahead
        with data(way, Dial(WITHIN_S)) as second:
            assert second is not ahead


@pytest.mark.parametrize("is_used", [False, True])
def test_a_server_that_does_not_take_our_certificate_is_left(is_used: bool, eventually: object) -> None:
    """It shows ours, so its refusal comes late: after our side of the handshake."""
    assert callable(eventually)
    ours, other = pem(), pem()
    with way_to(ours, other) as way:
        if is_used:
            way.data(Dial(WITHIN_S), WITHIN_S, lambda: False)
        eventually(lambda: way.address is None, WITHIN_S)
        assert way.data(Dial(WITHIN_S), WITHIN_S, lambda: False) is None
        assert way.control(WITHIN_S, lambda: False) is None
