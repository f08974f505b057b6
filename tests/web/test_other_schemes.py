"""URLs that say TLS where there is none, or the other way round, and unknown CAs: what to do is told."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from mpx_command import mpx, refused
from web.lying import copied
from web.servers.apache import apache_site
from web.servers.host_certificate import host_certificate
from web.servers.nginx import nginx_site
from web.servers.site import WebSite
from web.servers.wsgi_dav import wsgidav_site

MakeSite = Callable[..., contextlib.AbstractContextManager[WebSite]]
SITES: dict[str, MakeSite] = {"nginx": nginx_site, "apache": apache_site, "wsgidav": wsgidav_site}


@pytest.fixture(params=[(name, tls) for name in SITES for tls in (False, True)], ids=str)
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[WebSite]:
    name, tls = request.param
    (tmp_path / "served").mkdir()
    with SITES[name](tmp_path / "served", tls=tls) as made:
        yield made


def test_a_url_with_the_other_scheme(site: WebSite, tmp_path: Path) -> None:
    there = f"localhost:{site.port}"
    (tmp_path / "src").write_bytes(b"12345")
    wrong, right = (("http", "dav"), ("https", "davs")) if site.ca else (("https", "davs"), ("http", "dav"))
    says = "speaks TLS" if site.ca else "does not answer in TLS"
    for given, meant in zip(wrong, right, strict=True):
        refused(mpx("list", f"{given}://{there}/"), 5, says, f"write {meant}://")
        refused(mpx("copy", tmp_path / "src", f"{given}://{there}/up"), 5, says, f"write {meant}://")
    assert not list(site.folder.iterdir())


def test_a_server_that_understands_nothing_is_not_said_to_speak_tls(tmp_path: Path) -> None:
    (tmp_path / "served").mkdir()
    with nginx_site(tmp_path / "served", settings="return 400;") as broken:
        refused(mpx("list", f"http://localhost:{broken.port}/"), 3, "400 Bad Request")


def test_a_server_whose_ca_is_not_known(tmp_path: Path) -> None:
    (tmp_path / "served").mkdir()
    with nginx_site(tmp_path / "served", tls=True) as site:
        refused(mpx("list", site.url), 5, "is not valid", "--ca")


def test_a_server_that_asks_for_a_certificate(tmp_path: Path) -> None:
    """In TLS 1.3 it says so once the client has seen the handshake end; then no attempt is of use."""
    shown = host_certificate()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(shown.certificate, shown.key)
    context.load_verify_locations(shown.ca)
    context.verify_mode = ssl.CERT_REQUIRED
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                with pytest.raises(ssl.SSLError):
                    context.wrap_socket(connection.dup(), server_side=True)
                while connection.recv(65536):  # a reset would overtake what was said
                    pass

        serving = threading.Thread(target=serve)
        serving.start()
        outcome = copied(f"https://localhost:{listener.getsockname()[1]}/file", tmp_path / "to", retries=5)
        serving.join()
    assert outcome.code == 5, outcome
    assert "--cert" in outcome.text
