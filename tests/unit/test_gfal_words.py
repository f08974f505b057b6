"""What gfal2 is told and tells: URLs, listings, settings and errors."""

import errno
from collections.abc import Callable
from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.endpoints.gfal.meaning import Trouble, explained, is_not_trusted, is_of_source, status, told, trouble
from mpx.endpoints.gfal.served.listed import plain_names
from mpx.endpoints.gfal.settings import CopyOrder, GfalSettings, JobState, dumped, loaded, parse_settings
from mpx.endpoints.gfal.urls import folder_url, url_of
from mpx.endpoints.gfal.watched_job import error_of
from mpx.endpoints.schemes import capabilities_of, reached
from mpx.endpoints.sftp.wire import Code
from mpx.errors import NoSpace, SourceError, UsageError
from mpx.location import Location, is_through_gfal, parse_location, shown_place

NAMES = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1)


@given(NAMES)
def test_a_url_is_ascii_and_means_its_name(name: str) -> None:
    url = url_of("davs://host:443", f"/folder/{name}")
    assert url.isascii() and " " not in url
    assert unquote(url) == f"davs://host:443/folder/{name}"


def test_urls_of_some_servers() -> None:
    assert url_of("root://host:1094", "/a b") == "root://host:1094//a%20b"
    assert url_of("gsiftp://host:2811", "data") == "gsiftp://host:2811/~/data"
    assert url_of("srm://host:8443", "/srm/managerv2?SFN=/a b") == "srm://host:8443/srm/managerv2?SFN=/a%20b"
    assert url_of("davs://host:443", "/a?SFN=/b") == "davs://host:443/a%3FSFN%3D/b"
    assert folder_url("davs://host:443", "/a") == folder_url("davs://host:443", "/a/") == "davs://host:443/a/"
    assert folder_url("srm://host:8443", "/a") == "srm://host:8443/a"
    assert url_of("davs://host:443", "/\udcff") == "davs://host:443/%FF"


@given(st.lists(NAMES, max_size=5))
def test_names_that_a_server_encodes(names: list[str]) -> None:
    assert plain_names("davs://host:443", [quote(name, safe="") for name in names]) == names
    assert plain_names("root://host:1094", names) == names


@given(st.lists(NAMES, max_size=5))
def test_names_that_a_server_does_not_encode(names: list[str]) -> None:
    """One of them shows it."""
    raw = [*names, "with a blank"]
    assert plain_names("davs://host:443", raw) == raw


@given(st.builds(GfalSettings, st.text(), st.integers(), st.booleans(), st.text(), st.text()))
def test_settings_pass_as_they_are(settings: GfalSettings) -> None:
    assert parse_settings(settings.text()) == settings


def test_secrets_are_not_shown() -> None:
    assert "secret" not in repr(GfalSettings("davs://host:443", 60, tokens={"davs://host:443": "secret"}))


def test_orders_pass_as_they_are() -> None:
    order = CopyOrder("file:///a", "davs://host:443/b", 4, congestion="reno")
    assert CopyOrder(**loaded(dumped(order))) == order
    for content in (b"", b"1", b"[]", b"\xff"):
        with pytest.raises(ValueError):
            loaded(content)


@pytest.mark.parametrize(
    ("code", "message", "expected"),
    [
        (errno.ENOENT, "Result HTTP 404 : File not found  after 1 attempts", Trouble.MISSING),
        (errno.ENOENT, "Could not open the user certificate", Trouble.LOGIN),
        (errno.ECOMM, "CGSI-gSOAP running on dtn1 reports No such file or directory", Trouble.LOGIN),
        (errno.ECOMM, "CGSI-gSOAP running on dtn1 reports could not open connection to h:1", Trouble.LOST),
        (errno.EEXIST, "HTTP 405 : Method Not Allowed, File Exist", Trouble.THERE),
        (errno.EACCES, "HTTP 403 : Permission refused", Trouble.DENIED),
        (errno.EACCES, "globus_ftp_control: gss_init_sec_context failed", Trouble.LOGIN),
        (errno.EACCES, "globus_gsi_gssapi: SSL handshake problems", Trouble.LOGIN),
        (errno.EACCES, "the server responded with an error 530 530-Login incorrect.", Trouble.LOGIN),
        (errno.ENETRESET, "Error on XrdCl::CopyProcess::Run(): [FATAL] TLS error:  (source)", Trouble.LOGIN),
        (errno.EIO, "XrdCl::CopyProcess::Run(): [ERROR] Initialization error:  (destination)", Trouble.LOST),
        (errno.EIO, "XrdCl::CopyProcess::Run(): [FATAL] Socket error:  (destination)", Trouble.LOST),
        (errno.EIO, "[ERROR] Server responded with an error: [3007] Connection error", Trouble.OTHER),
        (errno.EAGAIN, "Failed to stat file (Resource temporarily unavailable)", Trouble.LOGIN),
        (errno.EAGAIN, "SRM_REQUEST_QUEUED", Trouble.OTHER),
        (errno.ECOMM, "globus_xio: System error in connect: Connection refused", Trouble.LOST),
        (errno.ECOMM, "the server responded with an error 501 Invalid command arguments.", Trouble.OTHER),
        (errno.ECOMM, "the server responded with an error 552 No space left on device", Trouble.FULL),
        (errno.EHOSTDOWN, "Result HTTP 400 : Server Error after 1 attempts", Trouble.OTHER),
        (errno.EHOSTDOWN, "Result HTTP 503 : Server Error after 1 attempts", Trouble.LOST),
        (errno.EHOSTDOWN, "Could not connect to server", Trouble.LOST),
        (errno.EBADE, "Could not read status line: SSL error: unexpected eof while reading", Trouble.LOST),
        (errno.EIO, "SRC and DST checksum are different. Source: 1 Destination: 2", Trouble.DAMAGED),
        (errno.ETIMEDOUT, "", Trouble.LATE),
        (errno.ECANCELED, "transfer cancelled", Trouble.STOPPED),
        (errno.EPROTONOSUPPORT, "Protocol not supported or path/url invalid", Trouble.NO_PLUGIN),
        (256, "HTTP 507 : Insufficient Storage", Trouble.FULL),
        (-1, "", Trouble.OTHER),
        (errno.ENOENT, "Unable to locate /quota/x; No such file", Trouble.MISSING),
        (errno.EACCES, "Unable to open /certificates/401/x; Permission denied", Trouble.DENIED),
        (errno.EACCES, "Unable to open the quota of 401 certificates; Permission denied", Trouble.DENIED),
        (errno.EPERM, "the server responded with an error 550 quota report: not permitted", Trouble.DENIED),
        (errno.ENOENT, "no quota report: No such file", Trouble.MISSING),
        (errno.EACCES, "globus_credential: the proxy credential has expired", Trouble.LOGIN),
        (errno.EACCES, "Result HTTP 401 : Authentication Error after 1 attempts", Trouble.LOGIN),
    ],
)
def test_what_failures_mean(code: int, message: str, expected: Trouble) -> None:
    assert trouble(code, message) is expected


WORDS = (
    *("quota", "certificate", "credential", "401", "530", "507", "552", "HTTP 403", "HTTP 503", "(source)"),
    *("connection reset", "no space left", "SOURCE", "DESTINATION", "checksum mismatch", "could not connect"),
    *("could not open the user certificate", "issuer is not trusted", "ssl error", "; HTTP 507 :", "a", "b"),
)
PARTS = NAMES | st.lists(st.sampled_from(WORDS), min_size=1).map(" ".join)
SAID = (
    (errno.EACCES, "Unable to open {name}; permission denied (source)"),
    (errno.ENOENT, "Unable to locate {name}; No such file"),
    (errno.ECOMM, "500-globus_xio: Unable to open file {name} 500-System error in open: Is a directory"),
    (errno.EIO, "Result HTTP 500 : {name} after 1 attempts"),
    (errno.EHOSTDOWN, "{name}: Could not connect to server"),
    (errno.EBADE, "DESTINATION {name}: SSL error: handshake"),
    (errno.ECOMM, "the server responded with an error 552 {name}: No space left on device"),
    (-1, "{name}"),
)


@given(
    st.sampled_from(SAID), st.lists(PARTS, min_size=1, max_size=3), st.sampled_from(["", "/d/e", "d://h:1"])
)
@pytest.mark.parametrize(
    "written", [str, lambda name: quote(name, safe="/~"), lambda name: quote(name, " /")]
)
def test_names_change_nothing_of_what_is_meant(
    written: Callable[[str], str], said: tuple[int, str], parts: list[str], before: str
) -> None:
    """They are told as they are, or encoded in whole or in part, at the server's place for them."""

    def meant(name: str) -> tuple[object, ...]:
        message = said[1].format(name=f"{before}{written(name)}")
        added = explained(message, [name]).removeprefix(told(message))
        return trouble(said[0], message, [name]), is_of_source(message, [name]), added

    assert meant(f"/{'/'.join(parts)}") == meant("/plain")


def test_a_folder_that_has_another_name_there() -> None:
    message = "Unable to open /elsewhere/annual quota report; failed"
    assert trouble(-1, message, ["/data/annual quota report"]) is Trouble.OTHER


def test_a_name_is_no_word_of_a_message() -> None:
    assert (
        trouble(-1, "Disk quota exceeded", ["/quota", "quota", "Disk quota exceeded", "/", ""])
        is Trouble.FULL
    )


@given(st.integers(-5, 300), st.text())
def test_whatever_is_told_is_one_short_line(code: int, message: str) -> None:
    found = status(code, message)
    assert found.code != Code.OK
    assert len(told(message)) <= 303 and len(told(message).splitlines()) <= 1
    assert isinstance(trouble(code, message), Trouble)


def test_what_is_said_beside_words_that_say_too_little() -> None:
    assert explained("HTTP 404 : File not found") == "HTTP 404 : File not found"
    assert explained("HTTP 403 : Permission refused").endswith("that permits this")
    said = explained("CGSI-gSOAP running on dtn1 reports Error reading token data: Connection closed")
    assert said.endswith("speaks no SRM, or has ended")
    assert "permits" not in explained("cannot open /HTTP 403/HTTP".replace(" ", "_"))


def test_who_is_not_trusted() -> None:
    assert is_not_trusted("(Neon): Server certificate verification failed: issuer is not trusted")
    assert is_not_trusted("Failed to stat file (Resource temporarily unavailable)")
    assert not is_not_trusted("Failed to stat file (Invalid exchange)")
    assert not is_not_trusted("HTTP 403 : Permission refused")


def test_whose_failure_it_is() -> None:
    assert is_of_source("SOURCE SRM_GET_TURL no") and is_of_source("it failed (source)")
    assert is_of_source("DESTINATION OVERWRITE no") is False
    assert is_of_source("no") is None


# --- places --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "srm://host/vo/file",
        "srm://host:8446/srm/managerv2?SFN=/vo/file",
        "gfal2+davs://host/a%20b",
        "gfal2+root://host:1095//a",
        "gfal2+gsiftp://me@host:2811/~/data",
    ],
)
def test_places_are_read_as_they_are_written(text: str) -> None:
    place = parse_location(text)
    assert is_through_gfal(place)
    assert capabilities_of(place).program == "gfal2"
    assert parse_location(str(place)) == place


def test_which_places_gfal2_reaches() -> None:
    here, web = parse_location("/file"), parse_location("davs://host/file")
    assert reached([here, web], None) == [here, web]
    by_gfal = parse_location("gfal2+davs://host/file")
    assert reached([here, web], "gfal2") == [here, by_gfal]
    srm = parse_location("srm://host/file")
    assert reached([web, srm], None) == [by_gfal, srm]
    assert shown_place(str(by_gfal)) == "gfal2+davs://host/file"
    other = [
        parse_location(each) for each in ("s3://bucket/key", "ssh://host/x", "ftp://host/x", "mpx://host/x")
    ]
    queries = [parse_location("https://host/x?sig=1"), parse_location("https://host/a%2Fb")]
    for place in (*other, *queries):
        with pytest.raises(UsageError, match="gfal2"):
            reached([place, srm], None)
    with pytest.raises(UsageError):
        reached([here, here], "gfal2")
    for text in ("gfal2+s3://bucket/key", "gfal2+://host/x", "gfal2+nothing://host/x"):
        with pytest.raises(UsageError):
            parse_location(text)


def test_a_place_of_srm_has_the_usual_port() -> None:
    assert parse_location("srm://host/x") == Location("srm", "/x", "host", 8443)


def test_the_last_cause_of_many_stands_first() -> None:
    message = (
        "globus_ftp_control: gss_init_sec_context failed GSS failure:  GSS Major Status: "
        "Authentication Failed GSS Minor Status Error Chain: globus_gsi_gssapi: SSLv3 handshake problems "
        "globus_gsi_callback_module: Can't get the local trusted CA certificate: Untrusted self-signed "
        "certificate in chain with hash 9a8d"
    )
    found = told(message)
    assert found.startswith("Can't get the local trusted CA certificate: Untrusted self-signed certificate")
    assert len(found) < len(message)
    assert (
        told("globus_xio: refused globus_xio: a call failed")
        == "globus_xio: refused globus_xio: a call failed"
    )


def test_what_stands_around_the_words_of_a_server() -> None:
    message = "Error on XrdCl::CopyProcess::Run(): [ERROR] Server responded with an error: [3010] No; denied"
    assert told(message) == "No; denied"


def test_a_full_disk_says_what_to_do() -> None:
    found = error_of(
        JobState(is_over=True, code=errno.ENOSPC, message="No space left on device"),
        "host",
        "x",
        names=(),
        default=SourceError,
    )
    assert isinstance(found, NoSpace)
    assert str(found).endswith("free some and copy the same SRC to the same DST again")
