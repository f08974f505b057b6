"""The packets of SFTP, version 3 (draft-ietf-secsh-filexfer-02), and of OpenSSH's extensions. Pure.

A packet is a length, a kind, a number (which a reply repeats) and fields; integers are big-endian, and
texts begin with their length. Names are bytes; they are decoded as this host decodes those of its own files.
"""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

VERSION = 3
HEADER_BYTES = 9  # length, kind and number
DATA_HEADER_BYTES = HEADER_BYTES + 4
LARGEST_SECONDS = 2**32 - 1  # of a time, since 1970
MOST_ENTRIES = 65536  # of one reply

POSIX_RENAME = "posix-rename@openssh.com"
FSYNC = "fsync@openssh.com"
LIMITS = "limits@openssh.com"
STATVFS = "statvfs@openssh.com"
GFAL = "gfal2@mpx"  # a copy or a checksum, begun, watched or cancelled; see endpoints/gfal/storage.py
CHECKSUM = "checksum@mpx"  # of a whole file, by name and algorithm: of servers that are programs of ours
COPY = "copy@mpx"  # to a name there from a URL, where the server reads that itself
COPIED = "copied@mpx"  # how many bytes of that have come to the name, as u64
CONGESTION = "congestion@mpx"  # that the connections of the server are to have, which is on this host
SENDING = "sending@mpx"  # which of its connections has sent most, as u64, and the kernel's record of it
RTT = "rtt@mpx"  # as the kernel of that server knows it, in microseconds, as u64; 0: it does not
_OF_EXTENSION = {
    POSIX_RENAME: b"1",
    FSYNC: b"1",
    LIMITS: b"1",
    STATVFS: b"2",
    GFAL: b"1",
    CHECKSUM: b"1",
    CONGESTION: b"1",
    RTT: b"1",
    SENDING: b"1",
}  # as they are announced

_U32, _U64 = struct.Struct(">I"), struct.Struct(">Q")
_HEADER = struct.Struct(">IBI")
_HAS_SIZE, _HAS_IDS, _HAS_MODE, _HAS_TIMES, _HAS_EXTENDED = 0x1, 0x2, 0x4, 0x8, 0x80000000


class WireError(ValueError):
    """A packet that does not make sense."""


class PacketKind(IntEnum):
    """The kinds of packets."""

    INIT = 1
    VERSION = 2
    OPEN = 3
    CLOSE = 4
    READ = 5
    WRITE = 6
    LSTAT = 7
    FSTAT = 8
    SETSTAT = 9
    FSETSTAT = 10
    OPENDIR = 11
    READDIR = 12
    REMOVE = 13
    MKDIR = 14
    RMDIR = 15
    REALPATH = 16
    STAT = 17
    RENAME = 18
    READLINK = 19
    SYMLINK = 20
    STATUS = 101
    HANDLE = 102
    DATA = 103
    NAME = 104
    ATTRS = 105
    EXTENDED = 200
    EXTENDED_REPLY = 201


class Code(IntEnum):
    """What a status says."""

    OK = 0
    EOF = 1
    NO_SUCH_FILE = 2
    PERMISSION_DENIED = 3
    FAILURE = 4
    BAD_MESSAGE = 5
    NO_CONNECTION = 6
    CONNECTION_LOST = 7
    OP_UNSUPPORTED = 8


class Open(IntEnum):
    """How a file is opened; they add up."""

    READ = 0x01
    WRITE = 0x02
    CREATE = 0x08
    TRUNCATE = 0x10


@dataclass(frozen=True, slots=True)
class Attributes:
    """What is told of a file, or is to be set; None: nothing is."""

    size_bytes: int | None = None
    mode: int | None = None  # with the bits that tell its type
    modified_s: int | None = None


@dataclass(frozen=True, slots=True)
class Status:
    """The outcome of a request."""

    code: int
    message: str = ""


@dataclass(frozen=True, slots=True)
class Handle:
    """An open file or folder."""

    value: bytes


@dataclass(frozen=True, slots=True)
class Data:
    """Bytes of a file; valid until the next packet is received."""

    content: memoryview


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """A name in a folder."""

    name: bytes
    attributes: Attributes


@dataclass(frozen=True, slots=True)
class Names:
    """Some names of a folder, or one name."""

    entries: tuple[FolderEntry, ...]


@dataclass(frozen=True, slots=True)
class Described:
    """What a name stands for."""

    attributes: Attributes


@dataclass(frozen=True, slots=True)
class Extended:
    """The answer to an extension's request."""

    content: bytes


@dataclass(frozen=True, slots=True)
class Version:
    """What a server speaks: its version, and the extensions that it announces."""

    number: int
    extensions: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """The largest packet, read and write in bytes, and the number of open handles; 0: not told."""

    packet_bytes: int = 0
    read_bytes: int = 0
    write_bytes: int = 0
    handles: int = 0


@dataclass(frozen=True, slots=True)
class FileSystemRoom:
    """How much room a file system has for this user."""

    free_bytes: int
    size_bytes: int


_DONE, _IS_DONE = struct.Struct(">BII"), Status(Code.OK)
Reply = Status | Handle | Data | Names | Described | Extended


# --- writing ---------------------------------------------------------------------------------------


def init() -> bytes:
    """Return the packet that begins a session."""
    return struct.pack(">IBI", 5, PacketKind.INIT, VERSION)


def packet(kind: PacketKind, number: int, *fields: bytes) -> bytes:
    """Return a request."""
    body = b"".join(fields)
    return _HEADER.pack(5 + len(body), kind, number) + body


def write_header(number: int, handle: bytes, offset: int, size_bytes: int) -> bytes:
    """Return what precedes the bytes of a file in a request to write them; `handle` is a field."""
    fields = handle + _U64.pack(offset) + _U32.pack(size_bytes)
    return _HEADER.pack(5 + len(fields) + size_bytes, PacketKind.WRITE, number) + fields


def text(content: bytes) -> bytes:
    """Return a text field."""
    return _U32.pack(len(content)) + content


def name(value: str) -> bytes:
    """Return a field with the name of a file."""
    return text(encoded(value))


def u32(value: int) -> bytes:
    """Return an integer field of 32 bits."""
    return _U32.pack(value)


def u64(value: int) -> bytes:
    """Return an integer field of 64 bits."""
    return _U64.pack(value)


def attributes(value: Attributes) -> bytes:
    """Return a field with attributes to set; the time of the last access is that of the modification."""
    flags, fields = 0, b""
    if value.size_bytes is not None:
        flags |= _HAS_SIZE
        fields += _U64.pack(value.size_bytes)
    if value.mode is not None:
        flags |= _HAS_MODE
        fields += _U32.pack(value.mode)
    if value.modified_s is not None:
        flags |= _HAS_TIMES
        fields += _U32.pack(value.modified_s) * 2
    return _U32.pack(flags) + fields


def extension(extended: str, number: int, *fields: bytes) -> bytes:
    """Return a request of an extension."""
    return packet(PacketKind.EXTENDED, number, text(extended.encode("ascii")), *fields)


def encoded(value: str) -> bytes:
    """Return a name as it travels."""
    return value.encode("utf-8", "surrogateescape")


def decoded(value: bytes) -> str:
    """Return a name as this host writes it."""
    return value.decode("utf-8", "surrogateescape")


# --- reading ---------------------------------------------------------------------------------------


class PacketFields:
    """Takes one field after the other from the body of a packet; raises WireError where there is none."""

    def __init__(self, body: memoryview) -> None:
        self._body = body
        self._position = 0

    @property
    def is_at_end(self) -> bool:
        """Whether no field is left."""
        return self._position == len(self._body)

    def take(self, size_bytes: int) -> memoryview:
        """Take so many bytes."""
        end = self._position + size_bytes
        if end > len(self._body):
            raise WireError("a packet ends within a field")
        piece = self._body[self._position : end]
        self._position = end
        return piece

    def u32(self) -> int:
        """Take an integer of 32 bits."""
        value: int = _U32.unpack(self.take(4))[0]
        return value

    def u64(self) -> int:
        """Take an integer of 64 bits."""
        value: int = _U64.unpack(self.take(8))[0]
        return value

    def text(self) -> memoryview:
        """Take a text."""
        return self.take(self.u32())

    def attributes(self) -> Attributes:
        """Take attributes."""
        flags = self.u32()
        size_bytes = self.u64() if flags & _HAS_SIZE else None
        if flags & _HAS_IDS:
            self.take(8)
        mode = self.u32() if flags & _HAS_MODE else None
        modified_s = None
        if flags & _HAS_TIMES:
            self.take(4)
            modified_s = self.u32()
        for _ in range(self.u32() if flags & _HAS_EXTENDED else 0):
            self.text()
            self.text()
        return Attributes(size_bytes, mode, modified_s)

    def entry(self) -> FolderEntry:
        """Take a name in a folder."""
        found = bytes(self.text())
        self.text()  # a line for people
        return FolderEntry(found, self.attributes())

    def names(self) -> Iterator[FolderEntry]:
        """Take a count, and so many names."""
        count = self.u32()
        if count > MOST_ENTRIES:
            raise WireError(f"a packet claims to have {count} names")
        for _ in range(count):
            yield self.entry()

    def status(self) -> Status:
        """Take an outcome."""
        code = self.u32()
        # Some old servers leave the words out.
        return Status(code, "" if self.is_at_end else bytes(self.text()).decode("utf-8", "replace"))


def parse_reply(packet: memoryview) -> tuple[int, Reply]:
    """Read a packet without its length; return the number of its request, and what it says."""
    if len(packet) >= _DONE.size and packet[0] == PacketKind.STATUS:  # most are no more than this
        _, done, code = _DONE.unpack_from(packet)
        if code == Code.OK:
            return done, _IS_DONE
    fields = PacketFields(packet)
    kind, number = fields.take(1)[0], fields.u32()
    if kind == PacketKind.DATA:
        return number, Data(fields.text())
    if kind == PacketKind.STATUS:
        return number, fields.status()
    if kind == PacketKind.HANDLE:
        return number, Handle(bytes(fields.text()))
    if kind == PacketKind.NAME:
        return number, Names(tuple(fields.names()))
    if kind == PacketKind.ATTRS:
        return number, Described(fields.attributes())
    if kind == PacketKind.EXTENDED_REPLY:
        return number, Extended(bytes(fields.take(len(packet) - 5)))
    raise WireError(f"a packet of the unknown kind {kind}")


def parse_version(packet: memoryview) -> Version:
    """Read the answer to `init`, without its length."""
    fields = PacketFields(packet)
    if fields.take(1)[0] != PacketKind.VERSION:
        raise WireError("something else than its version")
    number, extensions = fields.u32(), {}
    while not fields.is_at_end:
        extended = bytes(fields.text()).decode("ascii", "replace")
        extensions[extended] = bytes(fields.text())
    return Version(number, extensions)


def offers(version: Version, extended: str) -> bool:
    """Tell whether a server has an extension, in the version that is known here."""
    return version.extensions.get(extended) == _OF_EXTENSION[extended]


def parse_limits(content: bytes) -> ServerLimits:
    """Read the answer to LIMITS."""
    fields = PacketFields(memoryview(content))
    return ServerLimits(fields.u64(), fields.u64(), fields.u64(), fields.u64())


def parse_room(content: bytes) -> FileSystemRoom:
    """Read the answer to STATVFS."""
    fields = PacketFields(memoryview(content))
    fields.u64()
    unit_bytes, blocks = fields.u64(), fields.u64()
    fields.u64()
    return FileSystemRoom(fields.u64() * unit_bytes, blocks * unit_bytes)
