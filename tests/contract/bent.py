"""Servers that are bent at random, and what a copy from or to them may come to.

Whatever a server says, a copy ends within its time-outs: either with the right bytes, or with an error and
without a file that looks whole and is not. What nobody could know is left out of that, and only that:

- damage of the right length where no checksum is asked for, or offsets that are honoured now and then;
- a size that is told short, and a file that ends there;
- a name that a listing leaves out, or calls otherwise.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

from hypothesis import strategies as st
from interop import bends
from interop.bends import ALWAYS, Bend
from interop.bent_server import DEEDS, BentServer

import mpx as api

TIMEOUT_S = 0.4
HANGS_S = 100.0  # what takes longer than that has no end
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
    size_bytes: int
    mode_e: bool
    checksums: bool
    lacks: frozenset[str]  # features that the server does not have
    streams: int | None
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


def ended(source: str, destination: str, options: api.CopyOptions) -> api.MpxError | api.Report:
    """Copy, and return the report or the error. Fails when it hangs; raises what is no error of mpx."""
    stop = threading.Event()
    watch = threading.Timer(HANGS_S, stop.set)
    watch.start()
    try:
        return api.copy(source, destination, options, cancel=stop)
    except api.MpxError as error:
        assert not stop.is_set(), f"no end after {HANGS_S:g} s"
        return error
    finally:
        watch.cancel()


def is_right(case: Case, server: BentServer, got: bytes, true: bytes) -> bool:
    """Tell whether this is what the server has, or what it says that it has whenever it is asked."""
    if got == true:
        return True
    if got not in server.claims or (len(got) < len(true) and not case.bends_any(*SIZES)):
        return False
    return not case.checksums or case.bends_any(*SIZES)


def folder_of(path: Path) -> dict[str, bytes]:
    """Return the files below a folder that have their final names, by name."""
    return {
        str(each.relative_to(path)): each.read_bytes()
        for each in path.rglob("*")
        if each.is_file() and not each.name.endswith(".part")
    }
