"""GridFTP servers that do things in other ways than the stock one: a fake in place of each."""

import re
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from grids import as_user, shared_grid
from interop.fake_grid import FakeGrid, FakeSession
from interop.stock_server import StockServer
from mpx_command import mpx
from sites import make


@pytest.fixture(autouse=True)
def user() -> Iterator[None]:
    with as_user(shared_grid()):
        yield


def listed(server: FakeGrid, *options: str) -> str:
    done = mpx("list", server.url, *options)
    assert (done.code, done.out) == (0, "one\n"), done.err
    return done.err


def refused(server: FakeGrid, *options: str) -> str:
    done = mpx("list", server.url, *options)
    assert done.code == 5, (done.code, done.out, done.err)
    assert len(done.err.strip().splitlines()) == 1, done.err
    return done.err


@pytest.mark.parametrize("is_terse", [False, True])
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_sound_one(version: ssl.TLSVersion, is_terse: bool) -> None:
    with FakeGrid(shared_grid(), version=version, is_terse=is_terse) as server:
        listed(server)
        assert server.heard.index("PROT P") < server.heard.index("MLSD /")


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_one_that_is_another_does_not_learn_who_we_are(version: ssl.TLSVersion) -> None:
    with FakeGrid(shared_grid(), version=version) as server:
        done = mpx("list", server.url.replace("localhost", "127.0.0.1"))
        assert done.code == 5 and "nothing was sent" in done.err
        assert [session.knows_client for session in server.sessions] == [False]


def test_one_that_loses_what_comes_before_its_greeting() -> None:
    with FakeGrid(shared_grid(), loses_early=True) as server:
        listed(server)
        assert len(server.sessions) == 2


def test_one_that_encrypts_no_data_connections_lists_in_the_clear(tmp_path: Path) -> None:
    def prot(session: FakeSession, level: str) -> str:
        return "200 ok" if level == "C" else "534 will accept only clear"

    with FakeGrid(shared_grid(), {"PROT": prot}) as server:
        listed(server)
        said = refused(server, "--encrypt")
        assert "534 will accept only clear" in said and "leave --encrypt out" in said
        done = mpx("copy", "-r", "--dry-run", server.url, tmp_path / "here")
        assert "listings by gsiftp://localhost" in done.out + done.err


def test_one_that_refuses_a_login_in_the_clear() -> None:
    def user(session: FakeSession, _: str) -> None:
        session.say_clear("530 Login denied")
        session.control.shutdown(2)

    with FakeGrid(shared_grid(), {"USER": user}) as server:
        assert "Login denied" in refused(server)


@pytest.mark.parametrize(
    ("verb", "reply"),
    [("DCAU", "202 ignored"), ("DCAU", "500 what?"), ("PROT", "202 ignored"), ("PROT", "536 no")],
)
def test_one_that_does_not_authenticate_data_connections(verb: str, reply: str) -> None:
    with FakeGrid(shared_grid(), {verb: lambda *_: reply}) as server:
        said = refused(server)
        assert reply in said and "--no-dcau" in said
        assert not any(line.startswith("MLSD") for line in server.heard)


def test_one_whose_data_port_speaks_no_tls() -> None:
    def in_the_clear(session: FakeSession, _: str) -> str:
        session.say("150 here")
        connection, _address = session.data_port.accept()
        with connection:
            connection.recv(1000)
            connection.sendall(b"Type=file;Size=3; one\r\n")
        return "226 done"

    with FakeGrid(shared_grid(), {"MLSD": in_the_clear}) as server:
        assert "--no-dcau" in refused(server)


def test_one_that_cannot_take_a_certificate_now_is_given_no_proxy() -> None:
    with FakeGrid(shared_grid(), {"DCSC": lambda *_: "451 later"}) as server:
        done = mpx("list", server.url)
    assert done.code == 6 and "451" not in done.out and "later" in done.err


# --- what goes over the wire, as the stock server writes it down -----------------------------------


def protection_of(server: StockServer) -> set[tuple[str, str]]:
    """Return which commands for data were given, each with the protection that was asked for before."""
    found, levels = set(), {}
    for line in server.log_path.read_text(errors="replace").splitlines():
        if told := re.match(r"\[(\d+)\].*\[CLIENT\]: (PROT|MLSD|STOR|ESTO|RETR|ERET)\b ?(\S*)", line):
            session, verb, argument = told.groups()
            if verb == "PROT":
                levels[session] = argument
            else:
                found.add((verb, levels.get(session, "none")))
    return found


@pytest.mark.parametrize(("options", "level"), [((), "C"), (("--encrypt",), "P")])
def test_files_are_encrypted_as_asked_for_and_listings_always(
    tmp_path: Path, options: tuple[str, ...], level: str
) -> None:
    (tmp_path / "served").mkdir()
    make(tmp_path / "tree" / "file", 3 << 20)
    with StockServer(tmp_path / "served", grid=shared_grid()) as server:
        assert mpx("copy", "-r", *options, tmp_path / "tree", f"{server.url}tree").code == 0
        assert mpx("copy", "-r", *options, f"{server.url}tree", tmp_path / "back").code == 0
        found = protection_of(server)
    assert {each for each in found if each[0] == "MLSD"} == {("MLSD", "P")}
    files = {each for each in found if each[0] != "MLSD"}
    assert len(files) >= 2 and {asked for _, asked in files} == {level}, found
