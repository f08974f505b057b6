"""TLS with servers that speak HTTP: whose certificates count, and which of ours is shown. Real handshakes."""

import os
import ssl
import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from grids import shared_grid
from mpx_lab.private_grid import write_key
from tls_pairs import plain_pair

from mpx.endpoints.web.trust import client_context
from mpx.errors import AuthenticationError, UsageError
from mpx.net import tls
from mpx.net.tls import TlsSocket
from mpx.net.x509 import credential

ALLOW_PROXIES = 0x40


@pytest.fixture(autouse=True)
def nobody_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without CAs and without credentials of the user."""
    for name in ("X509_CERT_DIR", "X509_USER_PROXY", "X509_USER_CERT", "X509_USER_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setattr(credential, "_PROXIES", str(tmp_path / "x509up_u"))


@pytest.fixture
def ca(tmp_path: Path) -> str:
    """A file with the CA of the grid that tests share."""
    (tmp_path / "ca.pem").write_text(shared_grid().ca.pem)
    return str(tmp_path / "ca.pem")


@dataclass(slots=True)
class Met:
    """What a client and a server have seen of each other."""

    version: str | None = None
    protocol: str | None = None
    shown: str = ""  # the common name at the end of the client's chain
    problems: list[OSError] = field(default_factory=list)  # of the server


def server_context(
    certificate: str = "", key: str = "", *, of_client: int = ssl.CERT_OPTIONAL
) -> ssl.SSLContext:
    """A server of the grid that tests share, which takes proxies of its users."""
    grid = shared_grid()
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(certificate or grid.folder / "host.pem", key or grid.folder / "host.key")
    made.load_verify_locations(cadata=grid.ca.pem)
    made.verify_flags = ssl.VerifyFlags(made.verify_flags | ALLOW_PROXIES)
    made.verify_mode = ssl.VerifyMode(of_client)
    made.set_alpn_protocols(["h2", "http/1.1"])
    return made


def meet(
    client: ssl.SSLContext, server: ssl.SSLContext, name: str = "localhost", *, late: bool = False
) -> Met:
    """Do a handshake, and pass some bytes; raises what the client does. `late`: ask who it is afterwards."""
    met = Met()

    def serve() -> None:
        try:
            with server.wrap_socket(second, server_side=True) as theirs:
                if late:
                    theirs.verify_client_post_handshake()
                theirs.sendall(b"first")
                theirs.recv(6)
                subject = dict(each[0] for each in (theirs.getpeercert() or {}).get("subject", ())[-1:])
                met.shown = str(subject.get("commonName", ""))
                theirs.sendall(b"last")
        except OSError as error:
            met.problems.append(error)

    with plain_pair() as (first, second):
        serving = threading.Thread(target=serve)
        serving.start()
        try:
            with tls.secured(first, client, "the server", 60, name=name) as ours:
                assert isinstance(ours, TlsSocket)
                assert ours.recv(5) == b"first"
                ours.sendall(b"second")
                assert ours.recv(4) == b"last"
                met.version, met.protocol = ours.version(), ours.selected_alpn_protocol()
        finally:
            serving.join()
    return met


def trusting(ca: str | None, *, grid: bool = False) -> ssl.SSLContext:
    made, notes = client_context(ca=ca, grid=grid, certificate=None, key=None)
    assert not notes
    return made


def is_trusted(ca: str | None, *, grid: bool = False, server: ssl.SSLContext | None = None) -> bool:
    """Whether the server of the shared grid is trusted."""
    try:
        meet(trusting(ca, grid=grid), server or server_context())
    except AuthenticationError as error:
        assert "the certificate of the server is not valid" in str(error)
        return False
    return True


@pytest.fixture
def other() -> str:
    """The certificate of a CA that has issued nothing."""
    return shared_grid().new_ca("Other CA").pem


# --- whom we trust ---------------------------------------------------------------------------------------


def test_a_server_whose_ca_is_named(ca: str) -> None:
    assert meet(trusting(ca), server_context()) == Met("TLSv1.3", "http/1.1")


def test_no_version_before_tls_1_2(ca: str) -> None:
    server = server_context()
    server.maximum_version = ssl.TLSVersion.TLSv1_2
    assert meet(trusting(ca), server).version == "TLSv1.2"
    assert trusting(ca).minimum_version is ssl.TLSVersion.TLSv1_2


def test_a_server_has_to_bear_the_name_that_was_asked_for(ca: str) -> None:
    for name in ("dtn.example.org", "127.0.0.1"):
        with pytest.raises(AuthenticationError, match="not valid for"):
            meet(trusting(ca), server_context(), name)


def test_a_ca_that_is_named_takes_the_place_of_all_others(
    ca: str, other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other.pem").write_text(other)
    monkeypatch.setenv("SSL_CERT_FILE", ca)
    monkeypatch.setenv("X509_CERT_DIR", str(shared_grid().trusted))
    for grid in (False, True):
        assert is_trusted(None, grid=grid)
        assert not is_trusted(str(tmp_path / "other.pem"), grid=grid)


def test_a_file_may_hold_several_cas_and_who_is_not_at_the_top(other: str, tmp_path: Path) -> None:
    (tmp_path / "several").write_text(f"{other}\n# the next\n{shared_grid().ca.pem}")
    assert is_trusted(str(tmp_path / "several"))
    assert is_trusted(str(shared_grid().folder / "host.pem"))  # the certificate of the server itself


def test_a_folder_of_cas(other: str, tmp_path: Path) -> None:
    assert is_trusted(str(shared_grid().trusted))  # <hash>.0, beside signing policies
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "README").write_text("which is no certificate")
    (tmp_path / "folder" / "a.pem").write_text(other)
    assert not is_trusted(str(tmp_path / "folder"))
    (tmp_path / "folder" / "b.crt").write_text(shared_grid().ca.pem)
    assert is_trusted(str(tmp_path / "folder"))


@pytest.mark.parametrize(
    ("files", "named", "why"),
    [
        (None, "", "No such file or directory"),
        ({}, "", "holds no CA: neither"),
        ({"README": "text"}, "", "holds no CA: neither"),
        ({"a.pem": "text"}, "/a.pem", "holds no certificate in PEM"),
    ],
    ids=str,
)
def test_what_holds_no_ca(tmp_path: Path, files: dict[str, str] | None, named: str, why: str) -> None:
    place = tmp_path / "cas"
    if files is not None:
        place.mkdir()
        for name, text in files.items():
            (place / name).write_text(text)
    with pytest.raises(UsageError, match=why) as refused:
        trusting(str(place))
    assert f"{place}{named}" in str(refused.value) and "--ca" in str(refused.value)


def test_a_file_without_a_certificate(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(shared_grid().user.key_pem)
    for file in (str(tmp_path / "key"), "/dev/null"):
        with pytest.raises(UsageError, match=f"{file}, of --ca, holds no certificate in PEM"):
            trusting(file)
    with pytest.raises(UsageError, match="cannot read"):
        trusting("")


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "SSL_CERT_DIR"])
def test_the_store_of_the_system(
    variable: str, ca: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = tmp_path / "none"
    with pytest.raises(
        AuthenticationError, match=f"no CA is trusted.*none in {nowhere} and {nowhere}; .*--ca"
    ):
        trusting(None)
    monkeypatch.setenv(variable, ca if variable == "SSL_CERT_FILE" else f"{nowhere}:{shared_grid().trusted}")
    assert is_trusted(None)


def test_the_cas_of_grids_count_for_servers_of_grids_beside_those_of_the_system(
    ca: str, other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other.pem").write_text(other)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "other.pem"))
    monkeypatch.setenv("X509_CERT_DIR", str(shared_grid().trusted))
    assert is_trusted(None, grid=True) and not is_trusted(None)
    monkeypatch.setenv("SSL_CERT_FILE", ca)
    monkeypatch.delenv("X509_CERT_DIR")
    assert is_trusted(None, grid=True)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("X509_CERT_DIR", str(shared_grid().trusted))
    assert is_trusted(None, grid=True)


def test_a_folder_of_a_grid_that_is_not_there(ca: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", ca)
    monkeypatch.setenv("X509_CERT_DIR", "/nowhere")
    _, notes = client_context(ca=None, grid=True, certificate=None, key=None)
    assert notes == ["X509_CERT_DIR names /nowhere, which is no folder: no CA of a grid is trusted"]


def test_a_proxy_is_no_server(ca: str) -> None:
    with pytest.raises(AuthenticationError, match="proxy certificates not allowed"):
        meet(trusting(ca), server_context(str(shared_grid().proxy), str(shared_grid().proxy)))


# --- what we show ----------------------------------------------------------------------------------------


def shown(
    ca: str, certificate: str | None = None, key: str | None = None, *, grid: bool = False
) -> list[str]:
    """Return the name that a server sees at the end of our chain, and the notes."""
    made, notes = client_context(ca=ca, grid=grid, certificate=certificate, key=key)
    met = meet(made, server_context())
    assert not met.problems
    return [met.shown, *notes]


def test_a_certificate_that_is_named(ca: str, tmp_path: Path) -> None:
    user = shared_grid().user
    (tmp_path / "user.pem").write_text(user.pem)
    write_key(tmp_path / "user.key", user.key_pem)
    write_key(tmp_path / "both.pem", user.key_pem + user.pem)
    for grid in (False, True):
        assert shown(ca, str(tmp_path / "user.pem"), str(tmp_path / "user.key"), grid=grid) == ["Alice"]
        assert shown(ca, str(tmp_path / "both.pem"), grid=grid) == ["Alice"]
    assert shown(ca) == [""]


@pytest.mark.parametrize(
    ("bent", "says"),
    [
        ("open", "holds a key and is not yours alone"),
        ("missing", "No such file or directory"),
        ("other", "cannot be used: KEY_VALUES_MISMATCH"),
        ("expired", "has expired"),
        ("text", "cannot use"),
    ],
)
def test_a_certificate_that_is_named_and_cannot_be_used(
    ca: str, tmp_path: Path, bent: str, says: str
) -> None:
    grid = shared_grid()
    issued = grid.user
    if bent == "expired":
        issued = grid.issue("Bob", until=grid.user.certificate.not_valid_before_utc)
    key = grid.host.key_pem if bent == "other" else issued.key_pem
    file = tmp_path / "user.pem"
    if bent != "missing":
        write_key(file, "text" if bent == "text" else issued.pem + key)
    if bent == "open":
        file.chmod(0o644)
    with pytest.raises(AuthenticationError, match=says) as refused:
        client_context(ca=ca, grid=True, certificate=str(file), key=None)
    said = str(refused.value)
    assert str(file) in said and said.endswith("by --cert and --key") and "PRIVATE" not in said


def test_a_server_of_a_grid_sees_a_proxy(ca: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X509_USER_PROXY", str(shared_grid().proxy))
    assert shown(ca) == [""]
    (number,) = shown(ca, grid=True)
    assert number.isdecimal()


def test_a_server_of_a_grid_sees_a_certificate_where_there_is_no_proxy(
    ca: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shown(ca, grid=True) == [""]  # none at all, which is fine: there are tokens
    monkeypatch.setenv("X509_USER_CERT", str(shared_grid().folder / "user.pem"))
    monkeypatch.setenv("X509_USER_KEY", str(shared_grid().folder / "user.key"))
    assert shown(ca, grid=True) == ["Alice"]


@pytest.mark.parametrize("named", [True, False])
def test_a_proxy_that_has_expired_is_left_out(
    ca: str, tmp_path: Path, named: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid, usual = shared_grid(), tmp_path / f"x509up_u{os.geteuid()}"
    old = grid.issue("Bob", until=grid.user.certificate.not_valid_before_utc)
    write_key(usual, old.pem + old.key_pem)
    if named:
        monkeypatch.setenv("X509_USER_PROXY", str(usual))
    name, note = shown(ca, grid=True)
    assert name == "" and note.startswith(f"no certificate of yours is shown: {usual} has expired (")
    assert "make a new proxy" in note
    monkeypatch.setenv("X509_USER_CERT", str(shared_grid().folder / "user.pem"))
    monkeypatch.setenv("X509_USER_KEY", str(shared_grid().folder / "user.key"))
    assert shown(ca, grid=True) == (["", note] if named else ["Alice"])


def test_who_we_are_can_be_asked_after_the_handshake(ca: str) -> None:
    """As Apache does where only some folders need a certificate."""
    server = server_context(of_client=ssl.CERT_REQUIRED)
    server.post_handshake_auth = True
    folder = shared_grid().folder
    made, _ = client_context(
        ca=ca, grid=False, certificate=str(folder / "user.pem"), key=str(folder / "user.key")
    )
    assert meet(made, server, late=True).shown == "Alice"
