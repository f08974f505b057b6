"""User and password for a server, from ~/.netrc."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from mpx.endpoints.passwords import check_one_password, credentials
from mpx.errors import UsageError
from mpx.location import Location

SERVER = Location("ftp", "/x", "dtn.example.org", 2811)
AS_ME = Location("ftp", "/x", "dtn.example.org", 2811, "me")
OTHER = Location("ftp", "/x", "open.example.org", 2811)


@pytest.fixture
def entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("MPX_PASSWORD", raising=False)
    file = tmp_path / ".netrc"
    file.write_text("machine dtn.example.org login me password hush\n")
    file.chmod(0o600)
    return file


def test_the_entry_of_a_host_is_used(entries: Path) -> None:
    assert credentials(SERVER) == credentials(AS_ME) == ("me", "hush")
    assert credentials(OTHER) == ("anonymous", "mpx@")
    entries.unlink()
    assert credentials(SERVER) == ("anonymous", "mpx@")


def test_a_password_that_others_can_read_is_not_used(entries: Path) -> None:
    entries.chmod(0o644)
    for location in (SERVER, AS_ME):
        with pytest.raises(UsageError, match=r"chmod 600 ~/.netrc"):
            credentials(location)
    assert credentials(OTHER) == ("anonymous", "mpx@")  # needs none of its passwords
    entries.write_text("machine dtn.example.org login anonymous password me@example.org\n")
    assert credentials(SERVER) == ("anonymous", "me@example.org")


def test_what_is_no_netrc(entries: Path) -> None:
    entries.write_text("machin e\n")
    with pytest.raises(UsageError, match=r"cannot read ~/.netrc"):
        credentials(SERVER)


@pytest.mark.parametrize("kind", ["folder", "fifo", "endless", "letters", "large"])
def test_what_is_no_file_or_no_text(entries: Path, kind: str) -> None:
    entries.unlink()
    if kind == "folder":
        entries.mkdir()
    elif kind == "fifo":
        os.mkfifo(entries)
    elif kind == "endless":
        entries.symlink_to("/dev/zero")
    else:
        entries.write_bytes(b"machine \xff login x password y\n" if kind == "letters" else b"#" * (2 << 20))
    with pytest.raises(UsageError, match=r"cannot read ~/.netrc"):
        credentials(SERVER)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_password_with_the_end_of_its_line_is_refused_and_not_shown(
    entries: Path, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPX_PASSWORD", f"hush{end}")
    with pytest.raises(UsageError, match=r"the password for dtn\.example\.org contains a line end") as caught:
        credentials(AS_ME)
    assert "hush" not in str(caught.value)


def test_a_password_in_a_broken_netrc_is_not_shown(entries: Path) -> None:
    entries.write_text("machine dtn.example.org login me password two words\n")
    with pytest.raises(UsageError, match="not understood at or before line") as caught:
        credentials(SERVER)
    assert "words" not in str(caught.value)


@pytest.mark.parametrize("schemes", [("ftp", "ftp"), ("https", "davs"), ("ftp", "https")])
def test_a_password_is_sent_to_one_host(schemes: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = (
        Location(scheme, "/x", f"{host}.example.org", 1, "me")
        for scheme, host in zip(schemes, ("dtn", "other"), strict=True)
    )
    monkeypatch.delenv("MPX_PASSWORD", raising=False)
    check_one_password(one, other)
    monkeypatch.setenv("MPX_PASSWORD", "hush")
    with pytest.raises(UsageError, match="MPX_PASSWORD would be sent to both"):
        check_one_password(one, other)
    check_one_password(one, replace(other, user=""))
