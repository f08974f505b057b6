"""What an endpoint can, and the carriers to and from it. All that stands above them decides by this alone.

A scheme says what its servers can at best (`endpoints/schemes.py`): that is known before anything connects.
An endpoint says what its own server can, as far as that is known (`Endpoint.capabilities`) or after questions
(`Endpoint.find_out`). Imports little, as options are refused by it before the rest of a copy is imported.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from mpx.choices import SERVICE

CHECKSUMS = ("xxh3", "sha256", "sha512", "sha1", "md5", "crc32", "adler32")  # all that mpx knows
MANY_PARTS = 1 << 20  # where a checksum costs little more than its round trip


class StreamKind(Enum):
    """What a stream is, of which the tuner chooses the number."""

    HERE = "none: within this host"
    CONNECTION = "data connection"  # of ours, beside a session that says what it carries
    REQUESTS = "connection"  # of ours, on which each request says what it carries; there are no sessions
    PROGRAM = "session of a program"  # whose connection is not ours: nothing is steered but the number
    COPIES = "copy by a program"  # which is told from where to where, and moves whole files by itself


class RangeReads(Enum):
    """How a file is read from an offset on."""

    NONE = "no"
    ASKED = "yes"  # what comes does not say where in the file it begins
    STATED = "yes, and stated in the answer"


class PartsUp(Enum):
    """How parts of one file are stored, each over a stream of its own."""

    NONE = "no"  # a file is one stream, from its first byte on
    TRIED = "where a probe file shows it"  # the same, or at offsets: `Question.PARTS_UP` tells
    IN_TURN = "one after the other"  # at offsets, by one stream: an upload goes on where it stopped
    BLOCKS = "in one transfer"  # that several streams share: each block says where it belongs
    OFFSETS = "at offsets"  # each part by itself, so that an upload goes on where it stopped
    NUMBERED = "numbered parts"  # of an object, which appears once they are put together


@dataclass(frozen=True, slots=True)
class ThirdParty:
    """How a server sends files to another one without this host in between, or fetches them.

    `ways`: of PULL and PUSH, in which the destination or the source is told to copy a whole file, or SERVICE,
    which is told to have many copied. Without any both servers have sessions of ours, and one is told to send
    while the other is told to expect it.
    """

    protocol: str  # that the other server has to speak as well, as people call it
    ways: tuple[str, ...] = ()
    is_told: bool = True  # this server may be told so, as far as is known; it may be the other end anyway
    steered: bool = False  # the sender can be told which congestion control to use
    why_not: str = ""  # it neither sends nor fetches; empty where it may

    @property
    def is_by_service(self) -> bool:
        """Whether neither server is told, but a service that both belong to."""
        return self.ways == (SERVICE,)


class Question(Enum):
    """What takes a server a question, so that it is asked only where a decision needs it."""

    FALLBACK = "fallback"
    LINKS = "links"
    RENAMES = "renames"
    PARTS_UP = "parts_up"
    CHECKSUMS = "checksums"
    THIRD_PARTY = "third_party"


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an endpoint can. What is None, or can be told by a server only, is found out by a `Question`."""

    streams: StreamKind
    reads: RangeReads
    parts_up: PartsUp
    checksums: tuple[str, ...]  # of whole files, as far as is known
    part_checksums: tuple[str, ...]  # of parts of files
    third_party: ThirdParty | None = None  # None: it has no way to other servers but through this host
    tunable: bool = True  # the number of streams may change while bytes flow
    sends_parts: bool = True  # of files, as the source of a copy between two servers
    renames: bool | None = True  # a finished file is given its final name in one step
    lists: bool = True  # folders; False: it seems not to
    keeps_folders: bool = True  # those in which nothing is, too
    links: bool | None = True  # symbolic links can be made
    keeps_times: bool = True  # files can be given modification times, unless it has shown otherwise
    describes_links: bool = True  # `stat` is known to show links as links; else only listings do
    is_faithful: bool = True  # known to do what it acknowledges; others are asked what they have stored
    most_compared_parts: int = MANY_PARTS  # that a file is cut into to be compared, as each has its cost
    stores_anew: bool = False  # a file takes the place of what has its name, which is never written into
    admits_many: bool = False  # known to admit all sessions of a copy, so that none has to wait
    fallback: str = ""  # why data move in the simpler of its ways (GridFTP: MODE S); empty: in the better
    sets_congestion: bool = False  # a program gives its connections the congestion control that it is told
    switches_congestion: bool = False  # ... also to those that send by then
    program: str = ""  # what a program that has the streams speaks, as people call it
    why_program: str = ""  # why that moves the data, and what to do about it
    congestions: tuple[str, ...] = ()  # congestion controls that it can be told to send with
    # Says why it may not send with one, an empty text where it may; asks nothing. None: it cannot be told.
    why_not_congestion: Callable[[str], str] | None = None
    why_no_session: str = ""  # why no GridFTP session is looked for at its port; empty: there may be one
    through_ssh: bool = False  # by the user's ssh, which may ask for a password, and has settings of its own
    by_token: bool = False  # a token of `mpx token` lets in and names its key; nothing passes in the clear
    own_options: tuple[str, ...] = ()  # of CopyOptions, that mean something for it and few others

    @property
    def is_here(self) -> bool:
        """Whether these are the files of this host."""
        return self.streams is StreamKind.HERE

    @property
    def owns_streams(self) -> bool:
        """Whether data move over connections of ours, so that they can be steered."""
        return self.streams in (StreamKind.CONNECTION, StreamKind.REQUESTS)

    @property
    def restarts(self) -> bool:
        """Whether a file can be read from an offset on."""
        return self.reads is not RangeReads.NONE
