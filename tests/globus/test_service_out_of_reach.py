"""A service that is not reached as things are: one line says what to do, and nobody waits in vain."""

import pytest
from globus.conftest import Collections
from mpx_command import mpx, refused
from sites import make
from web.servers.nginx import nginx_site


@pytest.fixture
def tree(collections: Collections) -> Collections:
    for i in range(5):
        make(collections.one / f"run7/{i}", 10)
    return collections


@pytest.mark.parametrize("server", ["TRANSFER", "AUTH"])
def test_a_certificate_that_nobody_vouches_for(
    tree: Collections, monkeypatch: pytest.MonkeyPatch, server: str
) -> None:
    with nginx_site(tree.other, tls=True) as site:
        monkeypatch.setenv(f"GLOBUS_SDK_SERVICE_URL_{server}", f"https://localhost:{site.port}")
        ended = mpx("copy", "-r", f"{tree.one_url}run7", f"{tree.other_url}run7")
        refused(ended, 5, "the certificate of Globus is not valid", "GLOBUS_SDK_VERIFY_SSL")
        assert len(ended.err.splitlines()) == 1
        refused(mpx("list", tree.one_url), 5, "the certificate of Globus is not valid")


def test_the_authority_of_a_site(tree: Collections, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named in a setting, as the message says; what answers then is no Globus."""
    with nginx_site(tree.other, tls=True) as site:
        monkeypatch.setenv("GLOBUS_SDK_SERVICE_URL_TRANSFER", f"https://localhost:{site.port}")
        monkeypatch.setenv("GLOBUS_SDK_VERIFY_SSL", str(site.ca))
        ended = mpx("list", tree.one_url)
        assert ended.code != 5 and "certificate" not in ended.err, ended.err


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GLOBUS_SDK_SERVICE_URL_TRANSFER", "nowhere"),
        ("GLOBUS_SDK_SERVICE_URL_AUTH", "nowhere"),
        ("GLOBUS_SDK_VERIFY_SSL", "/no/such/file"),
    ],
)
def test_settings_that_are_no_use(
    tree: Collections, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    refused(mpx("copy", "-r", f"{tree.one_url}run7", f"{tree.other_url}run7"), 2, name.split("_URL")[0])


def test_a_timeout_that_is_unset(tree: Collections, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOBUS_SDK_HTTP_TIMEOUT", "-1")
    ended = mpx("copy", "-r", f"{tree.one_url}run7", f"{tree.other_url}run7")
    assert ended.code == 0, ended.err


@pytest.mark.parametrize("server", ["TRANSFER", "AUTH"])
def test_a_service_that_is_not_there(
    tree: Collections, monkeypatch: pytest.MonkeyPatch, closed_port: int, server: str
) -> None:
    for host, why in ((f"127.0.0.1:{closed_port}", "Connection refused"), ("no.such.host.invalid", "known")):
        monkeypatch.setenv(f"GLOBUS_SDK_SERVICE_URL_{server}", f"http://{host}/")
        ended = mpx("list", tree.one_url)
        refused(ended, 6, "cannot reach Globus to", f": {host}: ", why)
        assert "Pool" not in ended.err and "url" not in ended.err


@pytest.mark.parametrize("command", ["globus", "lab", "token"])
def test_a_command_without_another_shows_its_help(command: str) -> None:
    ended = mpx(command)
    assert ended.code == 2 and ended.out == ""
    assert ended.err.startswith(f"Usage: mpx {command} ") and "\nCommands:\n" in ended.err
    assert "error" not in ended.err and ended.err.count("\n") > 8
