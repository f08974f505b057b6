"""Who connects to a port of ours whose connections have to show who they are."""

import socket
import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from grids import as_user, shared_grid

from mpx.endpoints.ftp.gsi.data import GsiData
from mpx.endpoints.ftp.gsi.options import GsiMemory, GsiOptions
from mpx.endpoints.ftp.gsi.security import GsiSecurity
from mpx.endpoints.ftp.mode_e.data_listener import MOST_STRANGERS
from mpx.endpoints.ftp.mode_e.secured_listener import SecuredListener
from mpx.errors import AuthenticationError, MpxError
from mpx.location import parse_location
from mpx.net import tls
from mpx.net.dial import Dial
from mpx.net.self_signed import self_signed

STRANGERS = 2 * MOST_STRANGERS
PLACE = parse_location("gsiftp://localhost:1/")


def an_end(pem: str, *, is_private: bool) -> GsiData:
    wanted = x509.load_pem_x509_certificate(pem.encode()).public_bytes(Encoding.DER)

    def check(connection: object) -> None:
        if connection.getpeercert(binary_form=True) != wanted:  # type: ignore[attr-defined]
            raise AuthenticationError("another")

    return GsiData("the server", lambda context: tls.load_pem(context, pem), check, is_private=is_private)


def on_trial() -> int:
    return sum(thread.name == "mpx-inbound-trial" for thread in threading.enumerate())


@pytest.mark.parametrize("is_private", [False, True])
def test_silent_strangers_keep_nobody_out_and_do_not_pile_up(
    is_private: bool, eventually: Callable[..., None]
) -> None:
    certificate, key = self_signed("data", timedelta(days=1))
    end = an_end((certificate + key).decode(), is_private=is_private)
    admitted: list[socket.socket] = []
    listener = SecuredListener(
        socket.create_server(("127.0.0.1", 0), backlog=512),
        2,
        end,
        60.0,
        connected=lambda _: None,
        admit=lambda connection: admitted.append(connection) or True,
    )
    listener.start()
    strangers = [socket.create_connection(listener.address) for _ in range(STRANGERS)]
    try:
        for _ in range(2):
            server = end.open(listener.address, Dial(60.0), 60.0, lambda: False)
            server.close()
        eventually(lambda: len(admitted) == 2)
        eventually(lambda: on_trial() <= MOST_STRANGERS + 2)
        eventually(lambda: not listener.is_alive(), 30)  # all that were waited for are here
    finally:
        listener.close()
        listener.join()
        for each in (*strangers, *admitted):
            each.close()
    assert on_trial() == 0


@pytest.mark.parametrize("who", ["Alice", "Eve"])
def test_a_delegated_data_connection_is_one_of_our_own_name(who: str) -> None:
    """Anybody of the grid could answer at the data port."""
    grid = shared_grid()
    with as_user(grid):
        memory = GsiMemory(without_dcsc={(PLACE.host, PLACE.port)})
        ours = GsiSecurity(PLACE, GsiOptions(), memory).secured
        assert ours
    shown = grid.user if who == "Alice" else grid.issue("Eve")

    def show(context: object) -> None:
        tls.show_key(context, shown.pem + shown.key_pem)  # type: ignore[arg-type]
        context.load_verify_locations(capath=str(grid.trusted))  # type: ignore[attr-defined]
        context.verify_flags |= 0x40  # type: ignore[attr-defined]

    theirs = GsiData("the client", show, lambda _: None, is_private=False)
    with socket.create_server(("127.0.0.1", 0)) as port:

        def answer() -> None:
            connection, _ = port.accept()
            try:
                theirs.accept(connection, 30.0, lambda: False).close()
            except MpxError:
                connection.close()

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            if who == "Alice":
                ours.open(port.getsockname(), Dial(30.0), 30.0, lambda: False).close()
            else:
                with pytest.raises(AuthenticationError, match="/O=Lab/CN=Eve, not of /O=Lab/CN=Alice"):
                    ours.open(port.getsockname(), Dial(30.0), 30.0, lambda: False)
        finally:
            thread.join()
