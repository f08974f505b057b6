"""What XRootD's library tells, in the words of SFTP and of checksums, and what its process is told."""

import ssl
import stat
from pathlib import Path

import pytest
from grids import shared_grid

from mpx.endpoints.sftp.wire import Attributes, Code
from mpx.endpoints.xrootd import process
from mpx.endpoints.xrootd.meaning import attributes, parse_sum, refusal, told
from mpx.endpoints.xrootd.options import XrootdOptions
from mpx.endpoints.xrootd.process import environment
from mpx.errors import UsageError
from mpx.location import parse_location
from mpx.net.x509.ca_folder import CaFolder


@pytest.mark.parametrize(
    ("errno", "message", "code", "words"),
    [
        (3011, "[ERROR] Server responded with an error: [3011] Unable to open /x; no such file\n",
         Code.NO_SUCH_FILE, "Unable to open /x; no such file"),
        (3010, "[ERROR] Server responded with an error: [3010] not authorized", Code.PERMISSION_DENIED,
         "not authorized"),
        (3005, "[3005] Unable to locate /f/x; not a directory", Code.NO_SUCH_FILE,
         "Unable to locate /f/x; not a directory"),
        (3005, "[3005] Unable to remove /d; directory not empty", Code.FAILURE,
         "Unable to remove /d; directory not empty"),
        (3009, "[3009] disk quota", Code.FAILURE, "no space left: disk quota"),
    ],
)  # fmt: skip
def test_refusals(errno: int, message: str, code: Code, words: str) -> None:
    found = refusal(errno, message)
    assert (found.code, found.message) == (code, words)


def test_words_of_the_library_itself() -> None:
    assert told("[FATAL] Auth failed: No protocols left to try\n") == "Auth failed: No protocols left to try"
    assert (
        told("[FATAL] Connection error\n")
        == "the connection is refused, or was lost; look whether a server runs at that port"
    )


def test_attributes() -> None:
    assert attributes(7, 16, 100) == Attributes(7, stat.S_IFREG, 100)
    assert attributes(7, 2 | 16, 100) == Attributes(7, stat.S_IFDIR, 100)
    assert attributes(7, 4, 100) == Attributes(7, stat.S_IFCHR, 100)


@pytest.mark.parametrize(
    ("content", "algorithm", "expected"),
    [
        (b"adler32 0A1b2c3d", "adler32", "0a1b2c3d"),
        (b"adler32 1b2c3d", "adler32", "001b2c3d"),  # some leave zeros out
        (b"md5 d41d8cd98f00b204e9800998ecf8427e", "md5", "d41d8cd98f00b204e9800998ecf8427e"),
        (b"md5 d41d8cd98f00b204e9800998ecf8427e", "adler32", ""),
        (b"adler32", "adler32", ""),
        (b"adler32 00000001ff", "adler32", ""),
        (b"adler32 nonsense", "adler32", ""),
        (b"\xff", "adler32", ""),
        (b"", "adler32", ""),
    ],
)
def test_checksums(content: bytes, algorithm: str, expected: str) -> None:
    assert parse_sum(content, algorithm) == expected


def test_what_the_process_is_told() -> None:
    given = XrootdOptions(0.2, 60.0, certificate="/tmp/proxy.pem")
    found = environment(given, "secret", {"HOME": "/home/me"})
    assert found["HOME"] == "/home/me"
    assert found["BEARER_TOKEN"] == "secret"
    assert found["X509_USER_PROXY"] == "/tmp/proxy.pem"
    assert (found["XRD_CONNECTIONWINDOW"], found["XRD_REQUESTTIMEOUT"]) == ("1", "60")
    assert "X509_USER_KEY" not in found
    named, inherited = XrootdOptions(10.0, 60.0, certificate="/c", key="/k"), {"X509_CERT_FILE": "/file"}
    both = environment(named, "", inherited, CaFolder(str(shared_grid().trusted)))
    assert (both["X509_USER_CERT"], both["X509_USER_KEY"]) == ("/c", "/k")
    assert both["X509_CERT_DIR"] == str(shared_grid().trusted)
    assert "X509_CERT_FILE" not in both
    assert "BEARER_TOKEN" not in both


def test_where_no_grid_has_its_cas_the_system_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a folder the library would trust nobody, and web servers are known by these."""
    none, trusted = XrootdOptions(10.0, 60.0), ssl.get_default_verify_paths().openssl_capath
    monkeypatch.setattr(process, "GRID_CAS", str(tmp_path / "none"))
    assert environment(none, "", {})["X509_CERT_DIR"] == trusted
    for name in ("X509_CERT_DIR", "X509_CERT_FILE"):
        assert trusted not in environment(none, "", {name: "/given"}).values()
    monkeypatch.setattr(process, "GRID_CAS", str(tmp_path))
    assert "X509_CERT_DIR" not in environment(none, "", {})


@pytest.mark.parametrize(
    ("text", "name", "shown"),
    [
        ("root://host//data/x", "/data/x", "root://host//data/x"),
        ("root://host/data/x", "/data/x", "root://host//data/x"),
        ("roots://me@host:2094//a%20b", "/a b", "roots://me@host:2094//a%20b"),
        ("root://host", "/", "root://host//"),
        ("root://host//", "/", "root://host//"),
        ("root://[::1]:1094//x/", "/x/", "root://[::1]//x/"),
    ],
)
def test_urls(text: str, name: str, shown: str) -> None:
    location = parse_location(text)
    assert (location.name, str(location)) == (name, shown)
    assert parse_location(shown) == location


@pytest.mark.parametrize(
    "text", ["root:///x", "root://host//a%00", "root://host//a%0Ab", "root://me:pw@host//x"]
)
def test_urls_that_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_location(text)
