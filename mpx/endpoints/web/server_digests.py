"""Which digests of files a web server can be asked for: by its name, and as it has shown.

No server says whether it computes digests. Storage of grids does, plain web servers do not; of others those
that speak WebDAV are asked, and what they do not tell they are soon asked for no more.
"""

import enum
import re
import threading
from collections.abc import Mapping

from mpx.endpoints.web.headers import digests
from mpx.endpoints.web.reply import HttpReply

# Our names, and those of RFC 3230 (Want-Digest) and RFC 9530 (Want-Repr-Digest); xxh3 has none.
WIRE_NAMES: Mapping[str, str] = {
    "adler32": "adler32",
    "crc32": "crc32",
    "md5": "md5",
    "sha1": "sha",
    "sha256": "sha-256",
    "sha512": "sha-512",
}
_REPR_NAMES = {"adler32": "adler", **{name: WIRE_NAMES[name] for name in ("md5", "sha1", "sha256", "sha512")}}
_USUAL = ("adler32", "md5")  # that storage of grids computes
_COMPUTING = re.compile(r"xrootd|dcache|storm|eos\b", re.IGNORECASE)
_NOT_COMPUTING = re.compile(
    r"nginx|apache|wsgidav|cheroot|lighttpd|caddy|microsoft-iis|simplehttp|openresty|cloudflare|amazons3",
    re.IGNORECASE,
)
NOT_COMPUTED = (400, 405, 501)  # as XRootD answers where no checksum is configured
_WITHOUT_QUOTA = re.compile(r"xrootd|nginx|apache", re.IGNORECASE)  # answer PROPFIND without it


class _Kind(enum.Enum):
    COMPUTES = enum.auto()
    COMPUTES_NONE = enum.auto()
    UNKNOWN = enum.auto()


class ServerDigests:
    """What is known of one server. For any thread."""

    def __init__(self, asked: str = "") -> None:
        """`asked`: the checksum that the user asked for by name."""
        self.turn = threading.Lock()  # held by who asks a server that `hangs`
        self._asked = asked
        self._lock = threading.Lock()  # guards what is changed below
        self._name: str | None = None  # by its Server header; None: it has not answered yet
        self._told: set[str] = set()  # that came with some answer
        self._lacking: set[str] = set()

    @property
    def is_known(self) -> bool:
        """Whether it has answered anything."""
        return self._name is not None

    @property
    def is_known_to_compute(self) -> bool:
        """Whether its kind is known to compute digests, so that they are asked for together with others."""
        return self._kind is _Kind.COMPUTES

    @property
    def is_of_grids(self) -> bool:
        """Whether it is known to be storage of grids, which copies from and to other servers."""
        return self._kind is _Kind.COMPUTES

    @property
    def is_plain(self) -> bool:
        """Whether it is known to be a plain web server, which copies to no other one and computes nothing."""
        return self._kind is _Kind.COMPUTES_NONE

    @property
    def hangs(self) -> bool:
        """Whether it is known to leave requests unanswered, sent ahead or for digests, now and then."""
        return bool(re.match("xrootd", self._name or "", re.IGNORECASE))

    @property
    def may_list_checksums(self) -> bool:
        """Whether it may have checksums as properties of files: no server does that is known well."""
        return self._kind is _Kind.UNKNOWN or bool(re.match("dcache", self._name or "", re.IGNORECASE))

    @property
    def may_tell_quota(self) -> bool:
        """Whether it may tell how much room there is."""
        return not _WITHOUT_QUOTA.match(self._name or "")

    @property
    def _kind(self) -> _Kind:
        name = self._name or ""
        if _COMPUTING.match(name):
            return _Kind.COMPUTES
        return _Kind.COMPUTES_NONE if _NOT_COMPUTING.match(name) else _Kind.UNKNOWN

    def heard(self, reply: HttpReply) -> None:
        """Take note of an answer of the server."""
        told = digests_told(reply)
        with self._lock:
            if self._name is None:
                self._name = reply.header("Server")
            self._told |= told.keys()

    def lacks(self, algorithm: str) -> None:
        """Take note that it computes no such digest, as far as it has computed none before."""
        with self._lock:
            self._lacking.add(algorithm)

    def may_tell(self, algorithm: str) -> bool:
        """Tell whether it is of use to ask for a digest."""
        return algorithm in WIRE_NAMES and (algorithm in self._told or algorithm not in self._lacking)

    def has_told(self, algorithm: str) -> bool:
        """Tell whether it has told such a digest of some file."""
        return algorithm in self._told

    def offers(self, algorithm: str, *, speaks_dav: bool) -> bool:
        """Tell whether a copy counts on such digests of the server; see Endpoint.can_checksum."""
        if algorithm in self._told:
            return True
        if not self.may_tell(algorithm) or not (algorithm in _USUAL or algorithm == self._asked):
            return False
        kind = self._kind
        return kind is _Kind.COMPUTES or (kind is _Kind.UNKNOWN and speaks_dav)


def wanted(algorithm: str) -> dict[str, str]:
    """Return the headers that ask for a digest of a whole file; of one that `WIRE_NAMES` has."""
    asked = {"Want-Digest": WIRE_NAMES[algorithm]}
    if name := _REPR_NAMES.get(algorithm):
        asked["Want-Repr-Digest"] = f"{name}=10"
    return asked


def digests_told(reply: HttpReply) -> dict[str, str]:
    """Return the digests of the whole file that an answer tells; none of those that contradict each other."""
    fields = [value for name in ("Digest", "Repr-Digest") for value in reply.all(name)]
    fields += [f"md5={value.strip()}" for value in reply.all("Content-MD5")]
    return digests(",".join(fields)) if fields else {}
