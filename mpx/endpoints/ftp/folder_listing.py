"""Lists a folder of a server: MLSD, else LIST; what a listing leaves open is asked once it has ended.

Nothing that a server lists is left out in silence: an entry that cannot be understood is an error in its
place. Lines are read as they come; only entries that have to be asked about are kept until then.
"""

import contextlib
import posixpath
import re
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from urllib.parse import unquote

from mpx.endpoints.ftp.empty_folders import is_itself, stat_lists
from mpx.endpoints.ftp.extensions import true_name
from mpx.endpoints.ftp.facts import entry_info, kind_of, parse_time
from mpx.endpoints.ftp.kept_lines import KeptLines
from mpx.endpoints.ftp.list_formats import parse_list_line
from mpx.endpoints.ftp.listing_transfer import CutLine, ListingTransfer
from mpx.endpoints.ftp.refusals import is_unsupported
from mpx.endpoints.ftp.session import ClientSession
from mpx.endpoints.ftp.sizes import size_of
from mpx.endpoints.ftp.stored_size import stores_faithfully
from mpx.endpoints.ftp.wire import Reply, command, lines_of_facts, parse_facts
from mpx.engine.endpoint import FileInfo, Kind
from mpx.errors import ListingBroken, MpxError, PartialFailure
from mpx.report import Note, OnNote, Severity, no_note
from mpx.text import quoted

Listed = tuple[str, FileInfo | MpxError]
Refused = Callable[[Reply], MpxError]

_MAY_HIDE = "names with a leading dot may be missing in listings, as it takes no LIST -a"
_LIST_NOTE = (
    "{peer} has no MLSD, so folders were listed with LIST: times come from MDTM, where the server has it, "
    "and folders have none"
)
GROUP = 200  # names that are asked about together
MOST_KEPT, MOST_KEPT_BYTES = 1_000_000, 16 * 1024 * 1024  # lines of one folder that wait to be asked about
MOST_UNREADABLE = 1000  # lines of one folder, after which it is no listing
_MOST_LOOKED_AT = 10_000  # lines of a folder above one of which nothing is listed
_NOT_IMPLEMENTED = (500, 501, 502, 504)
_NO_DATA = (421, 425, 426)
_NOTHING_THERE = re.compile(r"no (such )?(files?|director|entries)|not found|does not exist|empty")


@dataclass(frozen=True, slots=True)
class _Open:
    """An entry of which something has to be asked."""

    name: str
    info: FileInfo
    is_kind_known: bool
    why: str = ""  # the line is in doubt, and what is not there is an error for this reason


class FolderListing:
    """Lists folders of one server. Remembers in which way that lists.

    `session` returns the session to ask over; where the endpoint let it go meanwhile, that is another.
    """

    def __init__(self, session: Callable[[], ClientSession], note: OnNote = no_note) -> None:
        self.promised = 0  # how many entries a Globus server says that there are
        self.count = 0  # how many it listed
        self.may_hide = False  # names with a leading dot, as the server takes no -a
        self._open = session
        self._note = note
        self._transfer: ListingTransfer | None = None  # under way
        features = self._session.features
        self._has_mlst = "MLST" in features
        self.uses_list = not self._has_mlst and "MLSD" not in features
        self._unreadable_lines = 0
        self._has_begun = False  # a line of LIST was read that is not blank
        self._shows_itself: bool | None = None  # LIST -a begins with the folder itself; None: not seen yet
        self._list_words = ["-a", ""]  # of LIST, in the order in which they are tried

    def note(self) -> Note | None:
        """Return what is to be said of listings as a whole; None where nothing is."""
        if not self.uses_list:
            return None
        note = _LIST_NOTE.format(peer=self._session.peer)
        return Note(Severity.NOTICE, f"{note}; {_MAY_HIDE}") if self.may_hide else Note(Severity.INFO, note)

    @property
    def _session(self) -> ClientSession:
        return self._open()

    def read_ahead(self) -> bool:
        """Read a listing under way to its end, and keep it; False where it is too long for that."""
        return self._transfer is None or self._transfer.read_ahead()

    def give_up(self) -> None:
        """Have a listing under way fail as if its connection were lost."""
        if self._transfer is not None:
            self._transfer.give_up()

    def entries(self, full: str, refused: Refused) -> Iterator[Listed]:
        """Yield what is in the folder `full`; raises what `refused` makes of a refusal."""
        self.promised = self.count = self._unreadable_lines = 0
        self._has_begun = False
        waiting, is_empty = KeptLines(), True
        cut: CutLine | None = None
        for line in self._lines(full, refused):
            self.count += 1
            found = self._read(full, line)
            is_empty = is_empty and found is None
            if isinstance(found, _Open) and isinstance(line, CutLine):
                cut = line
            elif isinstance(found, _Open):
                waiting.add(line)
                if waiting.count > MOST_KEPT or waiting.kept_bytes > MOST_KEPT_BYTES:
                    raise PartialFailure(
                        f"{self._session.peer} lists too many entries in {full} that need a request each "
                        f"({waiting.count}); copy its parts separately"
                    )
            elif found:
                yield found
        if is_empty and not self.uses_list:
            self._check_enters(full)
        for lines in waiting.take(GROUP):
            yield from self._asked(full, lines)
        if cut is not None:
            yield from self._asked(full, [cut])

    # --- listing -------------------------------------------------------------------------------------

    def _transferred(self, full: str, line: bytes) -> Generator[str]:
        """Yield what a listing of the folder `full` says; one of nothing is asked for again if in doubt."""
        for is_second in (False, True):
            self._transfer = transfer = ListingTransfer(self._session, line, _Refusal)
            try:
                yield from transfer.lines()
            finally:
                self._transfer = None
            if not transfer.doubt:
                return
            what = f"{self._session.peer} reports {full} as listed, but {transfer.doubt}"
            lists = stat_lists(self._session, full)
            if lists:
                raise ListingBroken(f"{what}; the folder is not empty")
            if lists is None and is_second:
                self._note(f"{what}; {full} is treated as empty")
            elif lists is not None:
                return

    def _lines(self, full: str, refused: Refused) -> Iterator[str]:
        if not self.uses_list:
            lines = 0
            try:
                for line in self._transferred(full, command("MLSD", full)):
                    lines += 1
                    yield line
            except _Refusal as refusal:
                if refusal.reply.code not in _NOT_IMPLEMENTED or lines:
                    self._unless_empty(full, refusal.reply, lines, refused)
                    return
                self.uses_list = True
            else:
                return
        yield from self._lines_of_list(full, refused)

    def _check_enters(self, full: str) -> None:
        """Raise PartialFailure where nothing is listed of a folder that the server may read but not enter.

        It has the names of what is there, can tell nothing of them, and leaves them out. Globus servers and
        mpx serve say so.
        """
        session = self._session
        if stores_faithfully(session.features):
            return
        entered = session.call(command("CWD", full))
        if not entered.is_ok and not is_unsupported(entered):
            raise PartialFailure(
                f"{session.peer}: permission denied on {full}, as it cannot be entered: {entered.reason}"
            )

    def _lines_of_list(self, full: str, refused: Refused) -> Iterator[str]:
        """Yield what LIST says from within the folder: as an argument its name could be taken for a pattern.

        Servers that hide names with a leading dot show them for -a; others take that for the name of a file.
        """
        entered = self._session.call(command("CWD", full))
        if not entered.is_ok:
            raise refused(entered)
        is_name = False
        refusal: _Refusal | None = None
        for words in list(self._list_words):
            lines = 0
            refusal = None
            held: list[str] = []  # a line that is of a file `-a` where no other follows it
            try:
                for line in self._transferred(full, command("LIST", *words.split())):
                    if not lines and not held and words and line.endswith(f" {words}"):
                        held.append(line)
                        continue
                    if words and not self._shows_itself:
                        self._shows_itself = is_itself(line)
                    lines += 1 + len(held)
                    yield from (*held, line)
                    held.clear()
            except _Refusal as error:
                refusal = error
            is_name = is_name or bool(held)
            if lines and words != self._list_words[0] and not is_name:
                self._list_words = [words]
                self.may_hide = True
            if refusal and (lines or words == self._list_words[-1] or refusal.reply.code in _NO_DATA):
                self._unless_empty(full, refusal.reply, lines, refused)
            if lines:
                return
        if refusal is None and self._may_be_unreadable(full):
            raise PartialFailure(
                f"{self._session.peer} listed {full} without any entries, even of the folder itself; the "
                "server may lack permission to read it"
            )

    def _may_be_unreadable(self, full: str) -> bool:
        """Tell whether LIST -a shows other folders among what they hold: those before, else those above."""
        above = full
        while self._shows_itself is None and self._list_words[0] and above.strip("/"):
            above = posixpath.dirname(above.rstrip("/"))
            if not self._session.call(command("CWD", above)).is_ok:
                continue
            listed = self._transferred(above, command("LIST", self._list_words[0]))
            with contextlib.suppress(_Refusal, ListingBroken), contextlib.closing(listed):
                for line in islice(listed, _MOST_LOOKED_AT):
                    self._shows_itself = self._shows_itself or is_itself(line)
        return bool(self._shows_itself)

    def _unless_empty(self, full: str, reply: Reply, lines: int, refused: Refused) -> None:
        """Raise what a refusal means, unless it only says that nothing is in a folder that is there."""
        is_empty = reply.code in (450, 550) and _NOTHING_THERE.search(reply.text.lower())
        if not is_empty or lines or not self._session.call(command("CWD", full)).is_ok:
            raise refused(reply)

    # --- lines ---------------------------------------------------------------------------------------

    def _read(self, full: str, line: str) -> "Listed | _Open | None":
        return self._read_list(full, line) if self.uses_list else self._read_facts(full, line)

    def _read_facts(self, full: str, line: str) -> Listed | _Open | None:
        try:
            entry = parse_facts(line)
        except ValueError:
            return self._unreadable(full, line) if line.strip() else None
        given = entry.facts.get("type", "").lower()
        if given in ("cdir", "pdir"):
            count = entry.facts.get("x.count", "")
            self.promised = max(self.promised, int(count) if re.fullmatch("[0-9]{1,9}", count) else 0)
            return None
        kind = kind_of(entry)
        true = unquote(entry.facts.get(true_name.FACT.lower(), ""), errors="surrogateescape")
        name = self._name(full, true or entry.name, kind)
        if not isinstance(name, str):
            return name
        info = entry_info(entry)
        why = "" if entry.is_sure and not isinstance(line, CutLine) else self._doubt(full, line)
        if kind is None or info.size_bytes is None or why:
            return _Open(name, info, kind is not None, why)
        return name, info

    def _read_list(self, full: str, line: str) -> Listed | _Open | None:
        try:
            found = parse_list_line(line)
        except ValueError:
            return self._unreadable(full, line)
        if found is None:  # a blank line, or the sum that some begin with
            is_first, self._has_begun = not self._has_begun, self._has_begun or bool(line.strip())
            return None if is_first or not line.strip() else self._unreadable(full, line)
        self._has_begun = True
        given, info = found
        name = self._name(full, given, info.kind)
        if not isinstance(name, str):
            return name
        why = self._doubt(full, line) if isinstance(line, CutLine) else ""
        if info.kind is Kind.FILE or why:
            return _Open(name, info, True, why)
        return name, info

    def _name(self, full: str, given: str, kind: Kind | None) -> str | Listed | None:
        """Return the name that a line gives; None for the folder itself and the one above it."""
        name = given.rstrip("/") if kind is Kind.FOLDER else given
        if name in (".", "..") and kind in (Kind.FOLDER, None):
            return None
        if name.startswith("/") and posixpath.dirname(name) == full.rstrip("/"):
            name = posixpath.basename(name)  # some servers give whole paths
        if "/" in name or name in ("", ".", ".."):
            return given, PartialFailure(
                f"invalid file name in the listing of {full} by {self._session.peer}; ignored: "
                f"{quoted(given[:255])}"
            )
        return name

    def _unreadable(self, full: str, line: str) -> Listed:
        self._unreadable_lines += 1
        if self._unreadable_lines > MOST_UNREADABLE:
            raise PartialFailure(
                f"{self._session.peer} lists in {full} more than {MOST_UNREADABLE} lines that cannot be read"
            )
        return "", PartialFailure(
            f"{self._session.peer} lists in {full} a line that cannot be read: {quoted(line[:200])}"
        )

    def _doubt(self, full: str, line: str) -> str:
        how = "ends in the middle of a line" if isinstance(line, CutLine) else "has an ambiguous line"
        return f"the listing of {full} by {self._session.peer} {how}: {quoted(str(line[:200]))}"

    # --- asking --------------------------------------------------------------------------------------

    def _asked(self, full: str, lines: list[str]) -> Iterator[Listed]:
        """Ask about what lines leave open, all at once, and yield the entries as they turn out to be."""
        entries = [entry for line in lines if isinstance(entry := self._read(full, line), _Open)]
        questions = [self._questions(full, entry) for entry in entries]
        replies = iter(self._session.pipeline([line for each in questions for line in each]))
        for entry, answers in [
            (e, list(islice(replies, len(q)))) for e, q in zip(entries, questions, strict=True)
        ]:
            yield entry.name, self._judged(full, entry, answers)

    def _questions(self, full: str, entry: _Open) -> list[bytes]:
        name = posixpath.join(full, entry.name)
        try:
            ask = [command("SIZE", name), command("MDTM", name)]
            if not entry.is_kind_known or entry.why:
                ask.append(command("CWD", name))
                if self._has_mlst:
                    ask.append(command("MLST", name))
        except MpxError:  # a name that no command can carry
            return []
        return ask

    def _judged(self, full: str, entry: _Open, answers: list[Reply]) -> FileInfo | MpxError:
        name = posixpath.join(full, entry.name)
        if not answers:
            return entry.info  # whoever uses the name is told why it cannot be used
        size, modified, *more = answers
        size_bytes = size_of(size)
        modified_s = entry.info.modified_s
        if modified_s is None and modified.code == 213:
            modified_s = parse_time(modified.text)
        info = replace(entry.info, modified_s=modified_s)
        if entry.is_kind_known and not entry.why:
            return replace(info, size_bytes=info.size_bytes if size_bytes is None else size_bytes)
        described = self._described(more[1]) if len(more) > 1 else None
        if described and described.kind is not Kind.OTHER:
            info = replace(described, modified_s=described.modified_s or modified_s)
        elif more[0].is_ok:
            info = replace(info, kind=Kind.FOLDER, size_bytes=0)
        elif size_bytes is not None or modified.code == 213:
            info = replace(info, kind=Kind.FILE)
        elif described and not entry.why:
            return described
        else:
            what = entry.why or f"{self._session.peer} does not say what {name} is"
            return PartialFailure(f"{what}; asked about it, it says: {size.reason}")
        if info.kind is Kind.FILE and size_bytes is not None:
            info = replace(info, size_bytes=size_bytes)
        return info

    @staticmethod
    def _described(reply: Reply) -> FileInfo | None:
        """Return what MLST says, None where that says nothing clear."""
        for line in lines_of_facts(reply):
            try:
                entry = parse_facts(line, is_indented=True)
            except ValueError:
                continue
            if kind_of(entry):
                return entry_info(entry)
        return None


class _Refusal(MpxError):
    """A listing command was refused; what that means is decided by whoever sent it."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.text)
        self.reply = reply
