"""Servers that are bent at random, and what a copy from or to them may come to.

Whatever a server says, a copy ends within its time-outs: either with the right bytes, or with an error and
without a file that looks whole and is not. What nobody could know is left out of that, and only that:

- damage of the right length where no checksum is asked for, or offsets that are honoured now and then;
- a size that is told short, and a file that ends there;
- a name that a listing leaves out, or calls otherwise.
"""

from collections.abc import Mapping
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
UP = ("150", "STOR", "MKD", "DELE", "RNFR", "RNTO", "MFMT", "SITE")
TREE = ("MLSD", "LIST", "150")
SIZES = ("size", "SIZE", "MLST", "MLSD", "LIST", "line", "listing", "FEAT")  # where a size is told
SIZE_CHOICES = (0, 1, 1000, 70_000, 1_500_000)
FEATURES = ("MLST type*;size*;modify*;", "SIZE", "MDTM", "MFMT", "REST STREAM")


def content(size: int, seed: int = 0) -> bytes:
    return Random(size + seed).randbytes(size)


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

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(each for each in FEATURES if each.split(" ")[0] not in self.lacks)

    @property
    def options(self) -> api.CopyOptions:
        return api.CopyOptions(
            timeout_s=TIMEOUT_S,
            connect_timeout_s=TIMEOUT_S,
            retries=1,
            streams=self.streams,
            checksum="adler32",
            explicit=frozenset({"checksum"} if self.checksums else ()),
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
        more = ("ERET", "PARALLEL") if self.mode_e else ()
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
    first, times = draw(OCCURRENCES)
    if place == "offset" and not checksums:
        first, times = 0, ALWAYS
    return Bend(place, draw(st.sampled_from(ways)), draw(AMOUNTS), first, times)


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
    if direction == "up":
        places += (*UP, "stored", "stored", "size", *(f"{verb} deed" for verb in DEEDS))
    places += ("CKSM", "CKSM") if checksums else ()
    return Case(
        tuple(draw(st.lists(a_bend(places, checksums=checksums), min_size=1, max_size=4))),
        draw(st.sampled_from(SIZE_CHOICES)),
        mode_e,
        checksums,
        draw(st.frozensets(st.sampled_from(["MLST", "SIZE", "MDTM", "MFMT", "REST"]), max_size=2)),
        1 if direction == "up" else draw(st.sampled_from([None, 1, 3])),
        draw(st.booleans()) if direction == "up" else False,
    )
