"""Servers that are bent at random, and what a copy from or to them may come to.

Whatever a server says, a copy ends within its time-outs: either with the right bytes, or with an error and
without a file that looks whole and is not. What nobody could know is left out of that, and only that:

- damage of the right length where no checksum is asked for, or offsets that are honoured now and then;
- a size that is told short, and a file that ends there;
- a name that a listing leaves out, or calls otherwise;
- bytes of an upload that a marker says have come, where no checksum is asked for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from hypothesis import strategies as st
from interop import bends
from interop.bends import ALWAYS, Bend
from interop.bent_server import DEEDS, BentServer

import mpx as api

TIMEOUT_S = 0.4
LOGIN = ("greeting", "USER", "FEAT", "TYPE", "PWD", "MODE", "EPSV", "PASV")
ASKED = ("MLST", "SIZE", "MDTM", "CWD", "REST")
DOWN = ("150", "RETR", "ERET", "PORT", "OPTS")
UP = ("150", "STOR", "ESTO", "MKD", "DELE", "RNFR", "RNTO", "MFMT", "SITE")
TREE = ("MLSD", "LIST", "150")
SIZES = ("size", "SIZE", "MLST", "MLSD", "LIST", "line", "listing", "FEAT")  # where a size is told
SIZE_CHOICES = (0, 1, 1000, 70_000, 1_500_000)
LENGTHENED = ("longer", "twice")
RESUMED_BYTES = 64 * 1024  # a file larger than that is, where one was interrupted; the tests make it so small
FEATURES = ("MLST type*;size*;modify*;", "SIZE", "MDTM", "MFMT", "REST STREAM")


def content(size: int, seed: int = 0) -> bytes:
    return Random(size + seed).randbytes(size)


@dataclass(frozen=True)
class Left:
    """What a run that was killed left of a file: a journal, and so many bytes of a partial file."""

    arrived: tuple[tuple[int, int], ...]  # as the journal says
    present_bytes: int | None  # None: it is gone
    is_damaged: bool = False

    def partial(self, true: bytes) -> bytes | None:
        if self.present_bytes is None:
            return None
        kept = bytearray(content(self.present_bytes, seed=1))
        for start, end in self.arrived:
            kept[start:end] = true[start:end]
        del kept[self.present_bytes :]
        return bends.changed(bytes(kept), len(kept) // 2) if self.is_damaged else bytes(kept)


@dataclass(frozen=True)
class Case:
    """One copy and the server that it meets."""

    bends: tuple[Bend, ...]
    size_bytes: int = 0
    mode_e: bool = False
    checksums: bool = False
    lacks: frozenset[str] = frozenset()  # features that the server does not have
    streams: int | None = 1
    is_there: bool = False  # an older file is at the destination
    left: Left | None = None

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(each for each in FEATURES if each.split(" ")[0] not in self.lacks)

    @property
    def demands(self) -> bool:
        """Whether something is asked for that a bent server may turn out not to have."""
        return self.checksums or (self.streams or 1) > 1

    @property
    def options(self) -> api.CopyOptions:
        return api.CopyOptions(
            timeout_s=TIMEOUT_S,
            connect_timeout_s=TIMEOUT_S,
            retries=1,
            streams=self.streams,
            checksum="adler32" if self.checksums else "auto",
        )

    @property
    def words(self) -> list[str]:
        """Return the options as the command takes them."""
        words = ["-q", "--timeout", f"{TIMEOUT_S}s", "--connect-timeout", f"{TIMEOUT_S}s", "--retries", "1"]
        words += ["--streams", str(self.streams)] if self.streams else []
        return [*words, "--checksum", "adler32"] if self.checksums else words

    def bends_any(self, *places: str) -> bool:
        return any(bend.place in places for bend in self.bends)

    def server(self, files: Mapping[str, bytes]) -> BentServer:
        more = ("ERET", "ESTO", "PARALLEL") if self.mode_e else ()
        return BentServer(
            self.bends, files, features=(*self.features, *more), checksums=self.checksums, mode_e=self.mode_e
        )


AMOUNTS = st.one_of(st.integers(0, 300), st.integers(0, 1 << 20))
OCCURRENCES = st.sampled_from([(0, ALWAYS), (0, 1), (1, 1), (1, ALWAYS), (2, 1), (3, 2)])


@st.composite
def a_bend(draw: st.DrawFn, places: tuple[str, ...], *, checksums: bool) -> Bend:
    place = draw(st.sampled_from(places))
    tables = {
        **{"data": bends.DATA, "listing": bends.DATA, "damage": bends.DAMAGE, "block": bends.BLOCKS},
        **{"line": bends.LINES, "stored": bends.STORED, "offset": bends.OFFSETS, "size": bends.SIZES},
    }
    ways = bends.DEEDS if place.endswith(" deed") else tuple(tables.get(place, bends.REPLIES))
    ways = bends.ARRIVALS if place == "arrival" else ways
    first, times = draw(OCCURRENCES)
    if place == "offset" and not checksums:
        first, times = 0, ALWAYS
    return Bend(place, draw(st.sampled_from(ways)), draw(AMOUNTS), first, times)


@st.composite
def what_is_left(draw: st.DrawFn, size: int, *, checksums: bool) -> Left:
    edges = sorted(draw(st.lists(st.integers(0, size), max_size=6)))
    arrived = tuple((start, end) for start, end in zip(edges[::2], edges[1::2], strict=False) if start < end)
    reached = arrived[-1][1] if arrived else 0
    present = st.one_of(st.just(reached), st.just(size), st.none(), st.integers(0, size + 1000))
    return Left(arrived, draw(present), checksums and draw(st.booleans()))


def without_damage(bent: Sequence[Bend]) -> list[Bend]:
    """Leave out what puts other bytes in the place of those that another bend cuts off."""
    cuts = any(bend.place == "data" and bend.how.startswith(("cut", "nothing")) for bend in bent)
    return [each for each in bent if not (cuts and each.place == "data" and each.how in LENGTHENED)]


@st.composite
def cases(draw: st.DrawFn, direction: str) -> Case:
    checksums, mode_e = draw(st.booleans()), draw(st.booleans())
    places: tuple[str, ...] = (*LOGIN, *ASKED)
    if direction in ("down", "tree"):
        places += (*DOWN, "data", "data", "offset", "size", "RETR deed", "ERET deed")
        places += ("block",) if mode_e else ()
        places += ("damage",) if checksums else ()
    if direction in ("tree", "list"):
        places += (*TREE, "line", "line", "line", "listing", "listing", "size")
    if direction in ("up", "tree up"):
        places += (*UP, "stored", "stored", "arrival", "arrival", "size", *(f"{verb} deed" for verb in DEEDS))
        places += ("marker", "OPTS", "TREV") if mode_e else ()
    places += ("CKSM", "CKSM") if checksums else ()
    size = draw(st.sampled_from(SIZE_CHOICES))
    resumes = direction in ("down", "up") and size > RESUMED_BYTES and draw(st.booleans())
    bent = draw(st.lists(a_bend(places, checksums=checksums), min_size=1, max_size=4))
    return Case(
        tuple(bent if checksums else without_damage(bent)),
        size,
        mode_e,
        checksums,
        draw(st.frozensets(st.sampled_from(["MLST", "SIZE", "MDTM", "MFMT", "REST"]), max_size=2)),
        draw(st.sampled_from([None, 1, 3] if mode_e else [None, 1])),  # in MODE S a file is one connection
        draw(st.booleans()) if direction == "up" else False,
        draw(what_is_left(size, checksums=checksums)) if resumes else None,
    )
