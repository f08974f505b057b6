"""Which checksum each file of a copy is compared by.

Short files by a strong hash, as Adler-32 proves little of them: its sums of a few bytes fill a small part of
32 bits. Where others on the way could change data but not answers, by a hash that nobody can match. Else long
files by what costs least where that is strong (xxh3 of mpx serve), else by Adler-32, which is
taken while the bytes pass; a hash in its place would read the file once more at both ends. What the server
offers and then refuses is asked for no more, and the next best is.
"""

import threading
from collections.abc import Callable, Collection

from mpx.choices import AUTO, NONE
from mpx.errors import MpxError, NoChecksum, OffsetsUnproven, UsageError

SHORT_BYTES = 1024 * 1024  # and less
_NO_CHECKSUMS = "the server computes no checksums"
FOR_SHORT = ("xxh3", "sha256", "md5", "sha512", "sha1", "crc32", "adler32")  # the best first
FOR_EXPOSED = ("sha256", "sha512")  # nobody makes other bytes with the same
FOR_LONG = ("xxh3", "adler32", "md5", "sha256", "sha1", "sha512", "crc32")
OF_PASSED_LONG = ("adler32", "crc32", "md5", "sha256", "sha1", "sha512")  # the first two in any order
MOST_REFUSALS = 20  # without one answer, after which a checksum is not asked for any more


class ChecksumChoice:
    """The checksums of one copy, and what is known of the server's. Safe for several threads.

    `asked`: what the user asked for, or AUTO; `offers(algorithm)`: whether the far end says that it can;
    `is_here`: both ends are this host; `is_exposed`: see Protection.exposed. `is_proof`: what is compared
    shows changes that somebody made on purpose.
    """

    def __init__(
        self, asked: str, offers: Callable[[str], bool], *, is_here: bool = False, is_exposed: bool = False
    ) -> None:
        wanted: tuple[str, ...] = (asked,) if asked != AUTO else FOR_SHORT
        if asked == AUTO and is_exposed and any(map(offers, FOR_EXPOSED)):
            wanted = FOR_EXPOSED
        self._lock = threading.Lock()
        self._offered = {algorithm for algorithm in wanted if algorithm != NONE and offers(algorithm)}
        self._order()
        self._refusals: dict[str, int] = {}
        self._answered: set[str] = set()
        self._why = ""  # the first refusal, which stands for all
        self._asked = asked
        self._is_here = is_here
        self._of_passed: tuple[str, ...] = ()
        self._is_relied_on = False
        self.is_between = False  # two servers
        self.why_none = ""  # nothing can be compared at both ends; empty where something can
        self.is_by_hand = asked not in (AUTO, NONE)
        self.is_required = self.is_by_hand  # a file that cannot be compared fails

    @property
    def verifies(self) -> bool:
        """Whether anything can be compared."""
        return bool(self._offered or self._of_passed)

    def compare_passed(self, at_destination: Collection[str]) -> None:
        """Have what the destination computes compared with what passes here, where nothing else can be."""
        may_be = FOR_EXPOSED if self.is_proof else OF_PASSED_LONG
        self._of_passed = tuple(
            name for name in may_be if name in at_destination and self._asked in (AUTO, name)
        )

    def of_passed(self, size_bytes: int | None) -> str:
        """Return the checksum that is taken of what passes of a file; empty where none is."""
        if self._is_relied_on:  # on what the source computes, as it may have sent other bytes
            return ""
        order = FOR_SHORT if (size_bytes or 0) <= SHORT_BYTES else OF_PASSED_LONG
        return next((name for name in order if name in self._of_passed), "")

    def candidates(self, size_bytes: int) -> tuple[str, ...]:
        """Return the checksums that a file of this size may be compared by, the best first."""
        return self._for_short if size_bytes <= SHORT_BYTES else self._for_long

    def _order(self) -> None:
        self._for_short = tuple(name for name in FOR_SHORT if name in self._offered)
        self._for_long = tuple(name for name in FOR_LONG if name in self._offered)
        self.is_proof = bool(self._offered) and self._offered.issubset(FOR_EXPOSED)

    def best(self, size_bytes: int | None) -> str:
        """Return the checksum for a file of this size, "none" if there is none.

        One of unknown size (None) may turn out short.
        """
        return next(iter(self.candidates(size_bytes or 0)), NONE)

    def rely(self) -> bool:
        """Tell whether every file will be compared; one that cannot be fails from now on."""
        if self._offered:
            self.is_required = self._is_relied_on = True
        return bool(self._offered)

    def answered(self, algorithm: str) -> None:
        """Take note that the server has computed one."""
        with self._lock:
            self._answered.add(algorithm)

    def refused(self, algorithm: str) -> None:
        """Take note that the server has not computed one although it offers to."""
        with self._lock:
            self._refusals[algorithm] = self._refusals.get(algorithm, 0) + 1
            if algorithm not in self._answered and self._refusals[algorithm] >= MOST_REFUSALS:
                self._offered.discard(algorithm)
                self._order()

    @property
    def has_answered(self) -> bool:
        """Whether the server has computed any checksum."""
        return bool(self._answered)

    def why_differs(self, algorithm: str) -> str:
        """Return what to do about bytes that have another checksum although they were sent twice.

        Disks and memory are to blame only where the bytes themselves were read at both ends.
        """
        if self._is_here:
            return "check the disks and the memory of this host"
        return (
            f"either they change on their way or at the server, or the server computes {algorithm} wrongly: "
            "then give --checksum with another name, or none"
        )

    def not_honoured(self, error: NoChecksum) -> MpxError:
        """Return what it means that the server computes no checksum at all where one is required."""
        if self.is_by_hand:
            return UsageError(
                f"--checksum {self._asked} is not possible here: the server offers it and then refuses "
                f"({error}); give --checksum none to copy unverified"
            )
        return OffsetsUnproven(f"the server offers checksums and refuses them: {error}")

    def unverified(self, name: str, error: NoChecksum) -> str:
        """Return the line for the report about a file that is left unverified; one for all alike."""
        if self.has_answered:
            return f"unverified: {name}: {error}"
        with self._lock:
            why = "the two servers tell no checksum in common" if self.is_between else _NO_CHECKSUMS
            self._why = self._why or f"unverified: {why}: {error}"
        return self._why
