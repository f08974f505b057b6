"""Which digests a web server is asked for, by its name and by what it has shown."""

import socket

import pytest

from mpx.endpoints.web.incoming import HttpIncoming
from mpx.endpoints.web.reply import HttpReply
from mpx.endpoints.web.server_digests import WIRE_NAMES, ServerDigests, digests_told, wanted
from mpx.engine.checksum import DIGITS


def answer(*lines: str) -> HttpReply:
    """An answer with these headers."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall("\r\n".join(["HTTP/1.1 200 OK", *lines, "", ""]).encode())
        return HttpReply(HttpIncoming(ours, "server", 10, lambda: False), "server", "HEAD")


def heard(*lines: str, asked: str = "") -> ServerDigests:
    server = ServerDigests(asked)
    server.heard(answer(*lines))
    return server


def offered(server: ServerDigests, *, speaks_dav: bool = True) -> set[str]:
    return {name for name in DIGITS if server.offers(name, speaks_dav=speaks_dav)}


@pytest.mark.parametrize("name", ["XrootD/v5.5.3", "dCache/9.2.6", "StoRM WebDAV", "EOS/5.2"])
def test_storage_of_grids_computes_the_usual_ones(name: str) -> None:
    for speaks_dav in (True, False):
        assert offered(heard(f"Server: {name}"), speaks_dav=speaks_dav) == {"adler32", "md5"}


@pytest.mark.parametrize("name", ["nginx/1.22.1", "Apache/2.4.71 (Debian)", "WsgiDAV/4.4.0 Cheroot/11.1.2"])
def test_web_servers_compute_none(name: str) -> None:
    assert offered(heard(f"Server: {name}", asked="md5")) == set()


def test_others_are_asked_where_they_speak_dav() -> None:
    for lines in ((), ("Server: Something/1.0",)):
        assert offered(heard(*lines)) == {"adler32", "md5"}
        assert offered(heard(*lines), speaks_dav=False) == set()


def test_what_was_asked_for_by_name_is_asked_of_who_may_compute_it() -> None:
    assert offered(heard("Server: dCache/9.2", asked="sha256")) == {"adler32", "md5", "sha256"}
    assert "xxh3" not in offered(heard("Server: dCache/9.2", asked="xxh3"))


def test_what_was_told_unasked_is_offered() -> None:
    assert offered(heard("Server: nginx", "Content-MD5: 1B2M2Y8AsgTpgAmY7PhCfg=="), speaks_dav=False) == {
        "md5"
    }


def test_what_a_server_lacks_is_asked_for_no_more_unless_it_has_told_it() -> None:
    server = heard("Server: dCache/9.2")
    server.lacks("md5")
    assert not server.may_tell("md5")
    assert offered(server) == {"adler32"}
    server.heard(answer("Digest: md5=1B2M2Y8AsgTpgAmY7PhCfg=="))
    server.lacks("md5")
    assert server.may_tell("md5")


def test_the_name_is_that_of_the_first_answer() -> None:
    server = ServerDigests()
    assert not server.is_known
    server.heard(answer("Server: dCache/9.2"))
    server.heard(answer("Server: nginx"))
    assert server.is_known
    assert offered(server) == {"adler32", "md5"}


def test_how_digests_are_asked_for() -> None:
    assert wanted("adler32") == {"Want-Digest": "adler32", "Want-Repr-Digest": "adler=10"}
    assert wanted("sha256") == {"Want-Digest": "sha-256", "Want-Repr-Digest": "sha-256=10"}


def sample(name: str) -> str:
    return f"Digest: {WIRE_NAMES[name]}={'ab' * (DIGITS[name] // 2)}"


@pytest.mark.parametrize("name", WIRE_NAMES)
def test_what_is_asked_for_is_understood(name: str) -> None:
    assert list(digests_told(answer(sample(name)))) == [name]
