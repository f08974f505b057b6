"""What a server's refusal means: its code and its own words decide, never the words of a file name."""

import pytest

from mpx.endpoints.ftp.refusals import cannot_send, cannot_store, is_clear, is_missing, reply_error
from mpx.endpoints.ftp.wire import Reply
from mpx.errors import AuthenticationError, ConnectionLost, DestinationError, MpxError, NoSpace, SourceError


@pytest.mark.parametrize(
    ("code", "text", "meaning"),
    [
        (552, "Exceeded storage allocation", NoSpace),
        (500, "Command failed. : System error in write: No space left on device", NoSpace),
        (550, "Disk quota exceeded", NoSpace),
        (550, "/data/quota_report.csv: Permission denied", DestinationError),
        (550, "/no space left/x: Permission denied", DestinationError),
        (550, "quota_report.csv: Permission denied", DestinationError),
        (450, "/srv/busy: Is a directory", DestinationError),
        (450, "File busy", ConnectionLost),
        (421, "Too many users", ConnectionLost),
        (530, "Login incorrect", AuthenticationError),
    ],
)
def test_meaning(code: int, text: str, meaning: type[MpxError]) -> None:
    assert type(reply_error(Reply(code, (text,)), "cannot store it", DestinationError)) is meaning


@pytest.mark.parametrize(
    ("code", "text", "storing", "sending"),
    [
        (500, "Command failed. : an end-of-file was reached", ConnectionLost, ConnectionLost),
        (500, "globus_xio: System error in writev: Broken pipe", ConnectionLost, ConnectionLost),
        (500, "globus_xio: Unable to connect to 10.0.0.1:40000", ConnectionLost, ConnectionLost),
        (500, "globus_ftp_control: the server-side callback failed", ConnectionLost, ConnectionLost),
        (426, "Data connection closed", ConnectionLost, ConnectionLost),
        (550, "/data/connect.log: Permission denied", DestinationError, SourceError),
        (550, "/data/a: No such file or directory", DestinationError, SourceError),
        (421, "/data/a: not found", ConnectionLost, SourceError),
        (552, "Quota exceeded", NoSpace, SourceError),
        (530, "Please log in", AuthenticationError, AuthenticationError),
    ],
)
def test_meaning_for_a_file(code: int, text: str, storing: type[MpxError], sending: type[MpxError]) -> None:
    reply = Reply(code, (text,))
    assert type(cannot_store(reply, "ftp://host", "/data/a")) is storing
    assert type(cannot_send(reply, "ftp://host", "/data/a")) is sending


@pytest.mark.parametrize(
    ("code", "text", "name", "partial", "hinted"),
    [
        (553, "Prohibited", "/a/b", "/a/.b.mpx-1.part", True),
        (550, "Prohibited", "/a/b", "/a/.b.mpx-1.part", True),
        (550, "/a/.b.mpx-1.part: Forbidden filename", "/a/b", "/a/.b.mpx-1.part", True),
        (553, "Datei verboten", "/a/b", "/a/.b.mpx-1.part", True),
        (550, "Permission denied.", "/a/b", "/a/.b.mpx-1.part", False),
        (553, "Could not create file.", "/a/b", "/a/.b.mpx-1.part", False),
        (553, "Can't open that file: Permission denied", "/a/b", "/a/.b.mpx-1.part", False),
        (550, "/a/.b.mpx-1.part: No such file or directory", "/a/b", "/a/.b.mpx-1.part", False),
        (550, "Read-only file system", "/a/b", "/a/.b.mpx-1.part", False),
        (502, "Prohibited", "/a/b", "/a/.b.mpx-1.part", False),
        (552, "Prohibited", "/a/b", "/a/.b.mpx-1.part", False),
        (553, "Prohibited", "/a/.b", "/a/..b.mpx-1.part", False),  # its own name begins with a dot
        (553, "Prohibited", "/a/b", "/a/b", False),
        (553, "Prohibited", "/a/b\\c", "/a/.b\\c.mpx-1.part", False),  # a backslash, as Pure-FTPD does
        (553, "Prohibited", "/a/b ", "/a/.b .mpx-1.part", False),
    ],
)
def test_a_hidden_name_that_is_refused(code: int, text: str, name: str, partial: str, hinted: bool) -> None:
    said = str(cannot_store(Reply(code, (text,)), "ftp://host", name, partial))
    assert ("--partial-prefix" in said) == hinted


@pytest.mark.parametrize(
    ("code", "text", "missing", "clear"),
    [
        (550, "/data/a: No such file or directory", True, True),
        (550, "a: Not a directory", True, True),
        (550, "Too many levels of symbolic links", True, True),
        (550, "a: Permission denied", False, True),
        (500, "Command failed. : System error in stat: File name too long", False, True),
        (550, "Datei nicht gefunden", False, False),
        (550, "Can't check for file existence", False, False),
        (550, "", False, False),
        (500, "MLST not understood", False, False),
        (502, "no access to this command", False, False),
        (213, "no such file", False, False),
    ],
)
def test_what_a_refusal_says_of_a_name(code: int, text: str, missing: bool, clear: bool) -> None:
    reply = Reply(code, (text,))
    assert is_missing(reply) == missing
    if not reply.is_ok:
        assert is_clear(reply) == clear
