"""What can go wrong, as one small tree.

MpxError (1)
├── UsageError (2)               the request itself is wrong, or this pair cannot honour it
├── SourceError (3)              the source is not there or cannot be read
├── DestinationError (4)         the destination refuses, or another copy holds it
├── AuthenticationError (5)      login failed, or the server requires encryption
│   └── TokenRefused             a server of ours no longer takes our token: no other try can help
├── ConnectionLost (6)           cannot reach, or lost and not reached again     may be retried
├── TransferTimeout (7)          no answer, no banner, or no progress            may be retried
├── IntegrityError (8)           checksum mismatch, or the source changed while it was copied
│   └── OffsetsUnproven          a server may not start at the requested offset; whole files are read instead
├── NoChecksum                   a server has no checksum for a file; it stays unverified, or is refused
├── NoSpace (9)                  disk full or over quota
├── PartialFailure (10)          some files of several failed
└── Interrupted (130)            stopped by the user; what arrived is kept
    ├── Terminated (143)         stopped by SIGTERM
    └── HungUp (129)             stopped by SIGHUP

The number is the exit code of `mpx`. Each message says what failed, on what, and what to do.
"""

TYPE_CHECKING = False  # as in mpx/__init__.py
if TYPE_CHECKING:
    from typing import Any


class MpxError(Exception):
    """Anything mpx reports to its user; `exit_code` and `may_retry` belong to the class."""

    exit_code = 1
    may_retry = False
    report: "Any" = None  # mpx.Report: what a copy had done until then
    result: "Any" = None  # mpx.ProbeResult: what a probe had seen until then


class UsageError(MpxError):
    """The request is wrong, or asks for what this pair of endpoints cannot do."""

    exit_code = 2


class SourceError(MpxError):
    """The source was not found or cannot be read."""

    exit_code = 3


class DestinationError(MpxError):
    """The destination cannot be written, or is locked by another copy."""

    exit_code = 4


class IsThere(DestinationError):
    """A file of that name has come to the destination meanwhile, and none is to be replaced."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} has come into being meanwhile; --overwrite never leaves it as it is")


class LeftInDoubt(DestinationError):
    """What has the name may be a part that an interrupted copy has left, or of others, who want it kept."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name} is there, and it is not known whether an interrupted copy has left it, or others have "
            "stored it; --overwrite never leaves it as it is: remove it, or copy it with --overwrite always"
        )


class NotRenamed(DestinationError):
    """A complete partial file could not be renamed, and an older file of that name is gone; it is kept."""


class AuthenticationError(MpxError):
    """The server rejected our credentials, or requires encryption or an account."""

    exit_code = 5


class TokenRefused(AuthenticationError):
    """A server says of our token that it holds no more; whoever has no session gets none again."""


class ConnectionLost(MpxError):
    """The other side cannot be reached, or was lost and could not be reached again."""

    exit_code = 6
    may_retry = True


class SessionEnded(ConnectionLost):
    """The server ended the session, or refused to open it, with a reply that says so."""


class ListingBroken(ConnectionLost):
    """A server ended a listing with 426 (data connection lost), whether or not all its lines had come."""


class InboundBlocked(ConnectionLost):
    """The server cannot, or will not, connect to us; the copy starts over in MODE S, where we connect."""


class NameNotCarried(MpxError):
    """A GridFTP server at the other end of ssh would read another name; the copy goes on over SFTP."""

    exit_code = 2


class ThirdPartyRefused(ConnectionLost):
    """Two servers do not send data to each other; they go through us, where that is permitted."""


class TransferTimeout(MpxError):
    """No banner, no reply or no progress for as long as the timeout allows."""

    exit_code = 7
    may_retry = True


class IntegrityError(MpxError):
    """What arrived is not what was sent, or the source changed on the way."""

    exit_code = 8


class OffsetsUnproven(IntegrityError):
    """Partial retrieves are not proven to be the requested ranges; whole files are requested instead."""


class NoChecksum(MpxError):
    """A server computes no checksum of a file; `refusal` is the error to raise where a checksum is required.

    `is_of_file`: the server refuses this file, which may be damaged; else it refuses the command.
    """

    def __init__(self, refusal: MpxError, *, is_of_file: bool = False) -> None:
        super().__init__(str(refusal))
        self.refusal = refusal
        self.is_of_file = is_of_file


class NoSpace(MpxError):
    """The destination has no room left, or the quota is used up."""

    exit_code = 9


class PartialFailure(MpxError):
    """Some files of several could not be copied; the others were."""

    exit_code = 10


class ControllerError(MpxError):
    """A controller assigns no paths, or does not do what it was asked for."""

    exit_code = 11


class Interrupted(MpxError):
    """The copy was stopped before its end; the next copy of the same SRC to the same DST continues it."""

    exit_code = 130

    def __init__(
        self, text: str = "interrupted; copy the same SRC to the same DST again to continue"
    ) -> None:
        super().__init__(text)


class Terminated(Interrupted):
    """As Interrupted, by SIGTERM."""

    exit_code = 143


class HungUp(Interrupted):
    """As Interrupted, by SIGHUP: the terminal or the session is gone."""

    exit_code = 129
