"""Describing names where MLST does not: by SIZE, MDTM and CWD, and at last by a listing of their folder.

Whether a name is missing is never read from a server's English alone. A refusal whose words are those of the
C library is believed at once; any other (in another language, without words, or the same for whatever may be
wrong) leads to further questions. What they find is remembered for the folder, so that a server with words of
its own costs no more than one question for a name.
"""

import posixpath
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from mpx.endpoints.ftp.facts import parse_time
from mpx.endpoints.ftp.refusals import is_missing, is_unsupported, says_why
from mpx.endpoints.ftp.session import ClientSession
from mpx.endpoints.ftp.sizes import size_of
from mpx.endpoints.ftp.wire import Reply, command
from mpx.engine.endpoint import FileInfo, Kind
from mpx.errors import DestinationError, MpxError, PartialFailure, SourceError

Answer = FileInfo | MpxError | None
Words = tuple[tuple[int, str], ...]  # refusals: their codes and what they say
MOST_WORDS = 64  # refusals that are remembered; a server has a few, unless it makes up a new one each time
LONGEST_WORDS = 1000  # characters of one that is remembered, beside its name


class OtherQuestions:
    """What else one server can be asked of names. Lives as long as its session."""

    def __init__(
        self,
        session: ClientSession,
        entries: Callable[[str], Iterator[tuple[str, FileInfo | MpxError]]],
        refused: Callable[[Reply, str, str], MpxError],
    ) -> None:
        """`entries` lists a folder; `refused` makes the error of a refusal of what was asked of a name."""
        self._session = session
        self._entries = entries
        self._refused = refused
        self._known_of = ""  # the folder whose missing names are refused ...
        self._known: set[Words] = set()  # ... in these words

    def ask(self, names: Sequence[str], refusals: Sequence[Reply | None]) -> list[Answer]:
        """Describe absolute names, None for what is missing, an error for what cannot be described.

        `refusals` are the answers to MLST; None: it was not asked.
        """
        answers: list[Answer] = [None] * len(names)
        unsure = [
            i
            for i, (name, refusal) in enumerate(zip(names, refusals, strict=True))
            if refusal is None or not self._is_known(name, [refusal])
        ]
        commands = [command(verb, names[i]) for i in unsure for verb in ("SIZE", "MDTM", "CWD")]
        replies = iter(self._pipeline(commands))
        by_folder: dict[str, list[_Doubt]] = {}
        for i in unsure:
            size, modified, enter = next(replies), next(replies), next(replies)
            found = _found(size, modified, enter)
            if found is not None:
                answers[i] = found
            elif not (is_missing(size) or is_missing(modified) or self._is_known(names[i], [size, modified])):
                doubt = _Doubt(i, names[i], refusals[i], size, modified)
                by_folder.setdefault(_folder(names[i]), []).append(doubt)
        for folder, doubts in by_folder.items():
            for doubt, answer in zip(doubts, self._by_listing(folder, doubts), strict=True):
                answers[doubt.number] = answer
        return answers

    def _pipeline(self, commands: Sequence[bytes]) -> list[Reply]:
        """Send questions of which some enter folders, and go back to where we were."""
        if not commands:
            return []
        return self._session.pipeline([*commands, command("CWD", self._session.home)])[:-1]

    def _by_listing(self, folder: str, doubts: Sequence["_Doubt"]) -> list[Answer]:
        """Look for names in the listing of their folder."""
        if any(doubt.name == folder for doubt in doubts):
            return [None] * len(doubts)  # the root, which is in no folder
        listed: dict[str, Answer] = {_base(doubt.name): None for doubt in doubts}
        try:
            for base, info in self._entries(folder):
                if base in listed:
                    listed[base] = info
        except (SourceError, DestinationError, PartialFailure) as error:
            return self._unlisted(folder, doubts, error)
        if not any(listed.values()):
            self._remember(folder, doubts)
        return [listed[_base(doubt.name)] for doubt in doubts]

    def _unlisted(self, folder: str, doubts: Sequence["_Doubt"], error: MpxError) -> list[Answer]:
        """Say what is known of names in a folder that cannot be listed.

        Who may enter a folder may ask for every name in it, so what is refused there is missing: unless the
        server refuses the question itself, or says that it is not permitted.
        """
        (enter,) = self._pipeline([command("CWD", folder)])
        if enter.is_ok:
            if not any(doubt.is_open for doubt in doubts):
                self._remember(folder, doubts)
            return [error if doubt.is_open else None for doubt in doubts]
        (above,) = self.ask([folder], [None]) if folder != "/" else (error,)
        if above is None or (isinstance(above, FileInfo) and above.kind is not Kind.FOLDER):
            return [None] * len(doubts)  # not there either, or a file
        return [self._refused(doubt.said, "describe", doubt.name) for doubt in doubts]

    # --- the words of this server ------------------------------------------------------------------

    def _is_known(self, name: str, refusals: Sequence[Reply]) -> bool:
        return _folder(name) == self._known_of and _words(name, refusals) in self._known

    def _remember(self, folder: str, doubts: Sequence["_Doubt"]) -> None:
        """Know from now on how this server refuses names that are missing in this folder."""
        if folder != self._known_of or len(self._known) >= MOST_WORDS:
            self._known_of, self._known = folder, set()
        for doubt in doubts:
            self._know(_words(doubt.name, [doubt.size, doubt.modified]))
            if doubt.described is not None:
                self._know(_words(doubt.name, [doubt.described]))

    def _know(self, words: Words) -> None:
        if all(len(text) <= LONGEST_WORDS for _, text in words):
            self._known.add(words)


@dataclass(frozen=True, slots=True)
class _Doubt:
    """A name of which MLST (if it was asked), SIZE and MDTM told nothing."""

    number: int
    name: str
    described: Reply | None
    size: Reply
    modified: Reply

    @property
    def said(self) -> Reply:
        """What a person is to be told of it."""
        return self.described or self.size

    @property
    def is_open(self) -> bool:
        """Whether the refusals may mean anything: the questions are not known there, or not permitted."""
        asked = [reply for reply in (self.described, self.size, self.modified) if reply is not None]
        return all(map(is_unsupported, asked)) or any(says_why(reply) for reply in asked)


def _folder(name: str) -> str:
    return posixpath.dirname(name.rstrip("/")) or "/"


def _base(name: str) -> str:
    return posixpath.basename(name.rstrip("/"))


def _words(name: str, refusals: Sequence[Reply]) -> Words:
    """Return refusals without the name that they are of."""
    return tuple((reply.code, _without(name, reply.text)) for reply in refusals)


def _without(name: str, text: str) -> str:
    words = text.replace(name, "*").split()
    return " ".join("*" if word.strip("\"'`():;,.") == _base(name) else word for word in words)


def _found(size: Reply, modified: Reply, enter: Reply) -> FileInfo | None:
    """Read the answers to SIZE, MDTM and CWD: what can be entered is a folder."""
    modified_s = parse_time(modified.text) if modified.code == 213 else None
    if enter.is_ok:
        return FileInfo(Kind.FOLDER, 0, modified_s)
    if size.code != 213 and modified_s is None:
        return None
    return FileInfo(Kind.FILE, size_of(size), modified_s)
