"""What a server's refusal means: its code and its own words decide, never the words of a file name."""

import pytest

from mpx.errors import AuthenticationError, ConnectionLost, DestinationError, MpxError, NoSpace
from mpx.gridftp_session import reply_error
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
