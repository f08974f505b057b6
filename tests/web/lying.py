"""Copies from and to servers that lie: how they end, and that nothing wrong is left behind."""

import itertools
import random
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from web.scripted_http import Scripted, ScriptedHttp
from web.servers.host_certificate import host_certificate

import mpx

NAME = "/folder/file"
SMALL, LARGE = (
    random.Random(1).randbytes(300_000),
    random.Random(2).randbytes(9_000_000),
)  # one piece, and several
SECRET = "s3cr3t"  # of queries and tokens: it is shown nowhere


@dataclass
class Outcome:
    """How a copy ended: 0, or the exit code and what the user is told; and the notes of its report."""

    code: int = 0
    text: str = ""
    notes: list[str] = field(default_factory=list)


def copied(src: object, dst: object, **options: Any) -> Outcome:
    """Copy; any error but those of mpx is one of the test, and so is a message that tells too much."""
    options = {"timeout_s": 1.0, "retries": 1, **options}
    if re.search("(https|davs)://", f"{src} {dst}"):
        options["ca"] = str(host_certificate().ca)
    try:
        report = mpx.copy(str(src), str(dst), mpx.CopyOptions(**options))
        outcome = Outcome(0, "", [str(note) for note in report.notes])
    except mpx.MpxError as error:
        notes = [str(note) for note in error.report.notes] if error.report else []
        outcome = Outcome(error.exit_code, str(error), notes)
    for said in (outcome.text, *outcome.notes):
        assert SECRET not in said and "Traceback" not in said
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", said), said
        assert len(said) < 2000
    return outcome


def down(server: ScriptedHttp, tmp_path: Path, query: str = "", **options: Any) -> Outcome:
    """Download the file; it is there only where that succeeds, and then exactly as it is at the server."""
    outcome = copied(f"{server.origin}{NAME}{query}", tmp_path / "file", **options)
    assert (tmp_path / "file").exists() == (outcome.code == 0), outcome
    return outcome


def exact(server: ScriptedHttp, tmp_path: Path) -> bool:
    """Tell whether the file that was downloaded has what the server has."""
    came: bytes = (tmp_path / "file").read_bytes()
    return came == server.files[NAME]


def first(times: int, then: Scripted) -> Scripted:
    """Have so many requests answered so, and later ones as usual; from any thread."""
    numbers = itertools.count()
    return lambda exchange: then(exchange) if next(numbers) < times else exchange.usual()


def up(server: ScriptedHttp, source: Path, **options: Any) -> Outcome:
    """Upload a file; it has its name only where that succeeds."""
    return copied(source, f"{server.dav}{NAME}", **options)
