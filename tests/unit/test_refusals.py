"""What a server's refusal means: its code and its own words decide, never the words of a file name."""

import pytest

from mpx.errors import AuthenticationError, ConnectionLost, DestinationError, MpxError, NoSpace, SourceError
from mpx.gridftp_refusals import cannot_send, cannot_store, reply_error
from mpx.gridftp_wire import Reply


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
