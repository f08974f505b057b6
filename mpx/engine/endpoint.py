"""One side of a copy: what names mean there. Carriers move bytes; endpoints name and describe.

Every implementation passes the same contract suite (tests/contract).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from mpx.engine.capabilities import Capabilities, Question
from mpx.errors import MpxError
from mpx.files.partial_file import PartialFile
from mpx.location import Location
from mpx.net import tcp
from mpx.report import Note, OnNote

OPEN = 0o700  # in the mode of a folder: its owner may list it, enter it and write in it


class Kind(Enum):
    """What a name stands for."""

    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    OTHER = "other"  # device, fifo, socket


@dataclass(frozen=True, slots=True)
class FileInfo:
    """What an endpoint tells of a name."""

    kind: Kind
    size_bytes: int | None = 0  # None: unknown before its end has been read
    modified_s: float | None = None  # seconds since 1970; whole seconds where the server says no more
    mode: int | None = None  # permission bits
    link_target: str = ""
    link_resolved: bool = False  # the endpoint tells only where the link leads in the end
    # Equal for two names of one file, where that can be known: device and inode here, else the server's word
    identity: tuple[int, int] | str | None = None
    other_size_bytes: int | None = None  # that the server tells as well, in answer to another question
    hole_bytes: int = 0  # of its size that take no room on a disk of this host
    tag: str = ""  # another one means other content (the ETag of HTTP); empty: none

    @property
    def known_bytes(self) -> int:
        """The size, 0 where it is unknown: for sums."""
        return self.size_bytes or 0


@dataclass(frozen=True, slots=True)
class Rtt:
    """The round-trip time of a control channel, in seconds, and what the kernel controls it with."""

    asked_s: float  # smoothed, from command to reply: the server's share of it counts
    kernel_s: float | None  # what the kernel makes of its segments (tcpi_rtt); None if it does not tell
    congestion: str | None = None  # congestion control, by which a route may override the kernel's default
    congestion_is_fixed: bool = False  # by that route, so nobody may choose
    address: tcp.Address | None = None  # of the server, as the control channel has it
    local_host: str | None = None  # the address of ours that it has


@dataclass(frozen=True, slots=True)
class Admission:
    """What lets us in at a server for some time."""

    until_s: float  # Unix time
    what: str  # as messages name it: your proxy
    renewal: str  # what has to be done before


@dataclass(frozen=True, slots=True)
class Protection:
    """How what passes between us and an endpoint is protected from those on the way."""

    exposed: str = ""  # what they could change unseen, although they cannot change answers; empty: nothing
    admission: Admission | None = None  # None: we are let in without end


@dataclass(frozen=True, slots=True)
class Commit:
    """A finished partial file that is to appear under its final name."""

    partial: str
    final: str
    modified_s: float | None
    mode: int | None
    written: PartialFile | None = None  # at this host: the file that was written under the partial name
    was_tried: bool = False  # to be given its name before: what was cut off then is to be settled
    size_bytes: int | None = None  # that it must have, if known
    has_holes: bool = False  # that were made on purpose
    is_synced: bool = False  # by who has brought it
    replaces: bool = True  # False: what has the final name by now stays, where the endpoint can tell


@dataclass(frozen=True, slots=True)
class Stamp:
    """The modification time and the mode that a folder is to have; None: leave it."""

    name: str
    modified_s: float | None
    mode: int | None
    follow: bool = False  # the user has named it, so that it may be a symbolic link


@dataclass(frozen=True, slots=True)
class Part:
    """Which bytes of which file a checksum is wanted of: [start, end)."""

    name: str
    start: int
    end: int
    written: PartialFile | None = None  # at this host: the file that was written under that name
    is_whole: bool = False  # all that the file has, so that a checksum of the whole file will do


class Endpoint(Protocol):
    """Names and metadata of one side. Not safe for several threads; open one for each.

    All methods raise SourceError or DestinationError (chosen by the endpoint's role), NoSpace,
    AuthenticationError, ConnectionLost or TransferTimeout.
    """

    location: Location

    @property
    def protection(self) -> Protection:
        """How what passes is protected; asks nothing."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What it can, as far as that is known; asks nothing, so that any thread may read it."""
        ...

    def find_out(self, *questions: Question) -> Capabilities:
        """Return what it can, with what its server announces and the answers to `questions`.

        Connects and logs in where that was never done; all else is asked only where it is questioned. What it
        has shown since (that it sends no ranges, keeps no times) is in the next answer.
        """
        ...

    def foresee(self, names: Sequence[str]) -> None:
        """Take the names that a copy describes first, so that no time is lost; called before all else."""
        ...

    def check_name(self, name: str) -> None:
        """Raise UsageError for a name that cannot be used at this endpoint."""
        ...

    def measure_rtt(self) -> Rtt | None:
        """Return the RTT after one more exchange; None for this host."""
        ...

    def stat(self, name: str, *, follow: bool = True) -> FileInfo | None:
        """Describe `name`, None if it does not exist.

        A link is followed if `follow`; one that leads nowhere is then None too.
        """
        ...

    def special_source(self, name: str) -> FileInfo:
        """Describe a source that the user has named and that is no regular file, folder or link (Kind.OTHER).

        As a file of unknown size, where it can be read as one. Raises SourceError where it cannot, UsageError
        for a device without an end.
        """
        ...

    def stats(self, names: Sequence[str], *, follow: bool = True) -> list[FileInfo | MpxError | None]:
        """Describe many names at once, as `stat` does.

        An error that concerns only one name, and is none to try again after, stands in its place.
        """
        ...

    def entries(self, name: str) -> Iterator[tuple[str, FileInfo | MpxError]]:
        """Yield what is in the folder `name`, in no order, as (name without folder, info); links as links.

        An error stands for an entry that cannot be described, with an empty name if that is unknown too.
        """
        ...

    def listing_note(self) -> Note | None:
        """Say what listings cannot tell here, as a line for the report; None where they tell all."""
        ...

    def sizes(self, names: Sequence[str]) -> list[int | None]:
        """Return how many bytes each of these files has, None where that cannot be known."""
        ...

    def make_folders(self, names: Sequence[str], *, replace_links: bool = False) -> list[bool | MpxError]:
        """Make folders and their missing parents, in this order.

        Returns for each True if it is new and so empty, False if it was there, or what kept it from being
        made. With `replace_links` a symbolic link in the place of one gives way, so that nothing is
        written through it (here; a server answers for its own links).
        """
        ...

    def unseal(self, names: Sequence[str]) -> dict[str, int]:
        """Let the owner write in folders that do not let him; return the modes that those had, by name.

        Best effort: what is not ours, or cannot be told of, stays as it is.
        """
        ...

    def make_link(self, name: str, target: str) -> str:
        """Make or replace the symbolic link `name`, never a folder; return the target it was given.

        That is another where an endpoint can only make absolute links to what is there.
        """
        ...

    def remove(self, name: str) -> None:
        """Remove a file; a missing one is fine."""
        ...

    def commit(self, files: Sequence[Commit], note: OnNote) -> list[Exception | None]:
        """Make finished files safe, give them times and modes, and their final names, as one group.

        Returns for each file None, or what kept it from its name; `note` is told of times and modes that
        could not be kept. A final name never appears before its bytes are synced where this endpoint can
        sync.
        """
        ...

    def set_times(self, folders: Sequence[Stamp], note: OnNote) -> None:
        """Give folders, in this order, their times and modes once their contents are there.

        Best effort; `note` is told, in words that name no folder, what could not be kept.
        """
        ...

    def checksums(
        self, algorithm: str, parts: Sequence[Part], stop: Callable[[], bool]
    ) -> list[str | Exception]:
        """Return a checksum (lower-case digits, see checksum.is_same) for each part, or why there is none.

        NoChecksum where the endpoint computes none of it, although it may of others.
        """
        ...

    def free_bytes(self, name: str) -> int | None:
        """Return the room where `name` will be written, None if it cannot be known."""
        ...

    def pause(self) -> None:
        """Prepare for not being asked anything for some time: nobody at the other end is kept waiting.

        What `entries` has under way is read ahead, and who waits for a session is given this one. To be
        called as often as one likes; the next question has a session again.
        """
        ...

    def let_go(self) -> None:
        """Give the session to others, if there is one and nothing is under way that cannot be read ahead."""
        ...

    def close(self) -> None:
        """Let go of connections; closing twice is fine."""
        ...
