"""Questions that go out in one write with a login, before anybody asks them, and the answers until then."""

import time
from collections.abc import Iterable, Sequence

from mpx.endpoints.ftp.extensions.dialing import VERB, Direction
from mpx.endpoints.ftp.wire import Reply, command
from mpx.engine.endpoint import Part

HOLDS_S = 2.0  # an answer; what a copy asks first it asks at once
MOST_BYTES = 1000  # of questions, so that they and the login fit into one segment
# With the greeting and the login ten answers: as many segments as a server sends until it hears from us.
MOST_QUESTIONS = 4
MOST_DESCRIBED = 8  # files, together with their checksums
MARKERS = (command("TREV", "RESTART", 1), command("TREV", "PERF", 0))  # of what is stored in MODE E
TICKET_UP, TICKET_DOWN = command(VERB, Direction.UP.value), command(VERB, Direction.DOWN.value)
_QUESTIONS = (b"MLST", b"SIZE", b"NOOP")  # that change nothing
_ONCE = command(VERB).strip()  # what answers it is used up


def first_questions(names: Iterable[str], *, stores: bool = False) -> tuple[bytes, ...]:
    """Return what a copy asks first of a server: whether it has MODE E, and what these names are.

    Where it `stores` there, also what precedes data, which the login leaves out where there are no tickets.

    Names are left out that a server may have to be asked about first: those that are not absolute, or not of
    printable ASCII. So are those that there is no room for.
    """
    lines, room = [command("MODE", "E")], MOST_BYTES
    for name in dict.fromkeys(names):
        if name.startswith("/") and name.isascii() and name.isprintable():
            # The first is the file, or may be; of the second MLST will do.
            asked = [command("MLST", name), command("SIZE", name)][: MOST_QUESTIONS - len(lines)]
            size_bytes = sum(map(len, asked))
            if size_bytes <= room:
                lines += asked
                room -= size_bytes
    return (*lines, TICKET_UP, *MARKERS) if stores else tuple(lines)


def descriptions(parts: Iterable[Part]) -> list[bytes]:
    """Return the questions that describe the files that are meant as a whole, of few files only."""
    names = [part.name for part in parts if part.is_whole]
    return [command(verb, name) for name in names[:MOST_DESCRIBED] for verb in ("MLST", "SIZE")]


class AskedAhead:
    """Answers that stand for some seconds, and until a command is sent that may change them."""

    def __init__(self) -> None:
        self._answers: dict[bytes, Reply] = {}
        self._until_s = 0.0

    def keep(self, questions: Sequence[bytes], answers: Sequence[Reply]) -> None:
        """Keep the answers to questions that were just asked."""
        self._answers = dict(zip(questions, answers, strict=True))
        self._until_s = time.monotonic() + HOLDS_S

    def answer(self, line: bytes) -> Reply | None:
        """Return the answer to a command; None where it is to be asked."""
        if self._answers and time.monotonic() > self._until_s:
            self.forget()
        if line.startswith(_ONCE):
            return self._answers.pop(line, None)
        return self._answers.get(line)

    def has(self, line: bytes) -> bool:
        """Tell whether there is an answer to a command."""
        return line in self._answers and time.monotonic() <= self._until_s

    def forget(self) -> None:
        """Have everything asked anew."""
        self._answers = {}

    def forget_names(self) -> None:
        """Have everything asked anew but settings of the session: another uses it from now on."""
        names = (b"MLST", b"SIZE")
        self._answers = {line: said for line, said in self._answers.items() if not line.startswith(names)}

    def sent(self, lines: Sequence[bytes]) -> None:
        """Note what is being sent."""
        if self._answers and not all(line.startswith(_QUESTIONS) for line in lines):
            self.forget()
