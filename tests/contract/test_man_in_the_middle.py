"""Whoever is between us and `mpx serve` learns nothing and changes nothing: at most the copy fails.

Each claim of docs/threat-model.md about the network is tried here.
"""

import contextlib
import socket
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from man_in_the_middle import Bend, ManInTheMiddle, cut, flipped
from random_bytes import random_bytes
from secure_client import secure_server, token_of
from sites import make

import mpx
from mpx.endpoints.ftp.extensions.dialing import CONTROL_PROTOCOL, DATA_PROTOCOL
from mpx.endpoints.ftp.login import log_in
from mpx.endpoints.ftp.session import ClientSession, SessionOptions
from mpx.endpoints.ftp.token import saved_file, token_for
from mpx.errors import AuthenticationError, ConnectionLost, MpxError, TokenRefused, TransferTimeout
from mpx.location import parse_location
from mpx.net import tls
from mpx.net.dial import Dial
from mpx.net.self_signed import self_signed
from mpx.serve.identity import Identity
from mpx.serve.token_serving import TokenServing

CONTENT = random_bytes(300_000)
QUICK = SessionOptions(connect_timeout_s=2.0, timeout_s=2.0)
EVERY_OF_DATA = 61  # byte of a data connection, as each costs a whole copy
EVERY_OF_LOGIN = 5
OF_QUIT_BYTES = 100  # what is sent after the login, at most
HANDSHAKE_BYTES = 1500  # in one direction, at most
FAILS = (AuthenticationError, ConnectionLost, TransferTimeout)


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "file").write_bytes(CONTENT)
    with secure_server(tmp_path / "served") as (server, secure), token_of(secure):
        yield server.port


def log_in_through(port: int, bend: Bend) -> bool:
    """Log in; False where that fails as it should."""
    with ManInTheMiddle(port, bend) as between:
        try:
            with log_in(ClientSession(parse_location(f"mpx://127.0.0.1:{between.port}/"), QUICK)) as session:
                return "MPX-DATA" in session.features
        except FAILS:
            return False


def sent_in_a_login(port: int) -> dict[bool, int]:
    """How many bytes go each way, by whether the client sends."""
    sent = {True: 0, False: 0}

    def count(_: int, from_client: bool, at: int, data: bytes) -> bytes:
        sent[from_client] = at + len(data)
        return data

    assert log_in_through(port, count)
    return sent


@pytest.mark.parametrize("from_client", [True, False])
def test_a_login_in_which_any_bit_is_changed_fails(port: int, from_client: bool) -> None:
    sent = sent_in_a_login(port)[from_client]
    assert 400 < sent < 4000
    changed = range(from_client, sent - OF_QUIT_BYTES, EVERY_OF_LOGIN)
    ignored = [at for at in changed if log_in_through(port, flipped(0, from_client, at))]
    # The version in the header of a record is not looked at (RFC 8446, section 5.1), and says nothing.
    assert len(ignored) <= 8, ignored


@pytest.mark.parametrize("from_client", [True, False])
def test_a_login_that_is_cut_anywhere_fails(port: int, from_client: bool) -> None:
    sent = sent_in_a_login(port)[from_client]
    for at in range(from_client, sent - OF_QUIT_BYTES, 3 * EVERY_OF_LOGIN):
        assert not log_in_through(port, cut(0, from_client, at)), at


def flipped_once(from_client: bool, position: int, bent: threading.Event) -> Bend:
    """Have one bit of the first data connection change that carries so much."""

    def bend(number: int, client: bool, at: int, data: bytes) -> bytes:
        changed = flipped(number, from_client, position)(number, client, at, data) if number else data
        if changed == data or bent.is_set():
            return data
        bent.set()
        return changed

    return bend


@pytest.mark.parametrize("upload", [True, False])
@pytest.mark.parametrize("from_client", [True, False])
def test_a_data_connection_that_is_changed_brings_nothing_wrong(
    port: int, tmp_path: Path, upload: bool, from_client: bool
) -> None:
    """Each copy ends with the right bytes, over other connections, or fails and says so."""
    options = mpx.CopyOptions(
        retries=1, timeout_s=2.0, connect_timeout_s=2.0, max_sessions=1, checksum="none"
    )
    (tmp_path / "source").write_bytes(CONTENT)
    hit = 0
    for at in range(from_client, HANDSHAKE_BYTES, EVERY_OF_DATA):
        bent = threading.Event()

        near, far = tmp_path / f"near{at}", f"far{at}"
        with ManInTheMiddle(port, flipped_once(from_client, at, bent)) as between:
            url = f"mpx://127.0.0.1:{between.port}/"
            ends = (str(tmp_path / "source"), url + far) if upload else (f"{url}file", str(near))
            try:
                mpx.copy(*ends, options)
            except MpxError:
                assert not near.exists()
                assert not (tmp_path / "served" / far).exists()
            else:
                arrived = tmp_path / "served" / far if upload else near
                assert arrived.read_bytes() == CONTENT
        hit += bent.is_set()
    assert hit > 5


# --- other servers ---------------------------------------------------------------------------------


class Impostor:
    """A server with a key of its own, which keeps what clients send it."""

    def __init__(self, folder: Path, *, alpn: str = CONTROL_PROTOCOL) -> None:
        certificate, key = self_signed("mpx serve", timedelta(days=1))
        (folder / "impostor.pem").write_bytes(certificate)
        (folder / "impostor.key").write_bytes(key)
        identity = Identity(folder / "impostor.pem", folder / "impostor.key", "")
        self._context = tls.context(server=True, protocols=[alpn])
        self._context.load_cert_chain(identity.certificate, identity.key)
        self.heard = b""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def __enter__(self) -> "Impostor":
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        sock, _ = self._listener.accept()
        with contextlib.suppress(OSError), tls.wrapped(sock, self._context, server=True) as connection:
            tls.finish_handshake(connection, 30)
            while data := connection.recv(1000):
                self.heard += data


def test_another_key_gets_no_token_and_is_told(port: int, tmp_path: Path) -> None:
    with Impostor(tmp_path) as other:
        location = parse_location(f"mpx://127.0.0.1:{other.port}/")
        with pytest.raises(AuthenticationError, match=r"the token was not sent.*mpx token accept mpx://127"):
            ClientSession(location, QUICK)
    assert other.heard == b""


def test_a_key_that_was_accepted_is_taken(port: int, tmp_path: Path) -> None:
    from mpx.endpoints.ftp.token import save

    with Impostor(tmp_path) as other:
        location = parse_location(f"mpx://127.0.0.1:{other.port}/")
        with pytest.raises(AuthenticationError) as refused:
            ClientSession(location, QUICK)
        key = str(refused.value).split()[-1]
    save(saved_file(location, "key"), f"{token_for(location).key} {key}")
    listener = socket.create_server(("127.0.0.1", other.port))
    other._listener, other._thread = listener, threading.Thread(target=other._serve)
    other._thread.start()
    with other, pytest.raises((ConnectionLost, TransferTimeout)):  # it never answers
        log_in(ClientSession(location, QUICK))
    assert b"PASS " + token_for(location).secret.encode() in other.heard


def test_a_token_without_a_key_needs_a_certificate_authority(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = parse_location(f"mpx://127.0.0.1:{port}/")
    monkeypatch.setenv("MPX_TOKEN", f"mpx1..{token_for(location).secret}")
    with pytest.raises(AuthenticationError, match=r"certificate of mpx://127.* is not valid"):
        ClientSession(location, QUICK)


def test_a_certificate_of_an_authority_that_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from certificates import make_certificates

    make_certificates(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    (tmp_path / "served").mkdir()
    from mpx.serve import Server

    for name, is_fine in (("controller", True), ("stranger", False)):
        secure = TokenServing(certificate=tmp_path / f"{name}.pem", key=tmp_path / f"{name}.key")
        with Server(tmp_path / "served", secure=secure) as server, token_of(secure):
            location = parse_location(f"mpx://127.0.0.1:{server.port}/")
            log_in(ClientSession(location, QUICK)).close()  # by its key
            monkeypatch.setenv("MPX_TOKEN", f"mpx1..{token_for(location).secret}")
            if is_fine:
                log_in(ClientSession(location, QUICK)).close()  # by its authority
            else:
                with pytest.raises(AuthenticationError, match="is not valid"):
                    ClientSession(location, QUICK)


def test_a_server_in_the_clear_gets_no_token(tmp_path: Path) -> None:
    from mpx.serve import Server

    secure = TokenServing()
    clear = pytest.raises(AuthenticationError, match="does not answer in TLS, so nothing was sent")
    with Server(tmp_path) as server, token_of(secure), clear:
        ClientSession(parse_location(f"mpx://127.0.0.1:{server.port}/"), QUICK)
    secure.close()


def test_data_goes_to_the_server_that_let_us_in_only(port: int, tmp_path: Path) -> None:
    """Whoever takes over the address after the login, with a key of its own, gets no opening."""
    with Impostor(tmp_path, alpn=DATA_PROTOCOL) as other:
        location = parse_location(f"mpx://127.0.0.1:{port}/")
        with log_in(ClientSession(location, QUICK)) as session:
            from mpx.endpoints.ftp.extensions.dialing import Direction, new_ticket

            assert session.security
            dialer = session.security.dialer(new_ticket(), Direction.UP)
            with pytest.raises(AuthenticationError, match="another server answers"):
                dialer.open(("127.0.0.1", other.port), Dial(2.0), 2.0, lambda: False)
    assert other.heard == b""


def test_a_token_that_holds_no_more_is_told(tmp_path: Path) -> None:
    (tmp_path / "served").mkdir()
    with secure_server(tmp_path / "served") as (server, secure), token_of(secure) as rights:
        secure.tokens.revoke(rights.id)
        with pytest.raises(AuthenticationError, match="does not accept the token: it was revoked"):
            log_in(ClientSession(parse_location(f"mpx://127.0.0.1:{server.port}/"), QUICK))


@pytest.mark.parametrize("way", ["up", "down"])
def test_a_token_that_is_revoked_in_the_middle_ends_the_copy(tmp_path: Path, way: str) -> None:
    """It is told once, and nothing is tried again, as nothing else can come of it."""
    (tmp_path / "served").mkdir()
    for folder in ("served", "here"):
        make(tmp_path / folder / "source", 30_000_000)
    with secure_server(tmp_path / "served") as (server, secure), token_of(secure) as rights:

        def revoke(progress: mpx.Progress) -> None:
            if progress.bytes_done and secure.tokens.still_holds(rights):
                secure.tokens.revoke(rights.id)

        ends = [str(tmp_path / "here/source"), f"{server.url}target"]
        if way == "down":
            ends = [f"{server.url}source", str(tmp_path / "here/target")]
        with pytest.raises(TokenRefused, match="does not accept the token: it was revoked") as caught:
            mpx.copy(*ends, mpx.CopyOptions(rate_bps=40e6), on_progress=revoke)
    tried_again = [note for note in caught.value.report.notes if "does not accept the token" in note]
    assert not tried_again
