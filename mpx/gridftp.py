"""A GridFTP or FTP server as an endpoint: names and metadata over one control channel of its own."""

import contextlib
import posixpath
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from mpx.endpoints.ftp import telnet_escape, wire
from mpx.endpoints.ftp.announced import announced
from mpx.endpoints.ftp.asked_ahead import descriptions, first_questions
from mpx.endpoints.ftp.capabilities import SCHEMES
from mpx.endpoints.ftp.checksum import ChecksumQuestions
from mpx.endpoints.ftp.commit import ServerCommit, unseal
from mpx.endpoints.ftp.facts import entry_info, followed, kind_of
from mpx.endpoints.ftp.protection import protection_of
from mpx.endpoints.ftp.refusals import cannot_list, is_clear, is_missing, reply_error
from mpx.endpoints.ftp.round_trip import rtt_of
from mpx.endpoints.ftp.session import ClientSession, SessionOptions
from mpx.endpoints.ftp.session_pool import open_session
from mpx.endpoints.ftp.sizes import asks_size, sized_by
from mpx.endpoints.ftp.stored_size import stored_sizes
from mpx.endpoints.ftp.why_mode_s import why_mode_s
from mpx.endpoints.ftp.wire import Reply, command
from mpx.engine.capabilities import Capabilities, Question
from mpx.engine.endpoint import Commit, FileInfo, Kind, Part, Protection, Rtt, Stamp
from mpx.errors import DestinationError, MpxError, SourceError
from mpx.location import Location
from mpx.report import Note, OnNote, no_note

if TYPE_CHECKING:  # imported once a folder is listed, or MLST leaves something open
    from mpx.endpoints.ftp.describe import OtherQuestions
    from mpx.endpoints.ftp.folder_listing import FolderListing


class GridFtpEndpoint:
    """The files of a server. Opens its session when first used."""

    def __init__(
        self, location: Location, options: SessionOptions, *, writing: bool, note: OnNote = no_note
    ) -> None:
        self.location, self._options, self._note = location, options, note
        self._refusal: type[MpxError] = DestinationError if writing else SourceError
        self._session: ClientSession | None = None
        self._former: ClientSession | None = None  # that was let go; it knows how names are written
        self._features: dict[str, str] | None = None  # of the latest session
        self._announced: tuple[dict[str, str], Capabilities] | None = None  # what they say
        self._ahead: Sequence[bytes] = ()  # what the first login asks as well
        self._listing: FolderListing | None = None
        self._other_questions: OtherQuestions | None = None  # of that session
        self._server_commit: ServerCommit | None = None  # of that session
        self._checksum_questions: ChecksumQuestions | None = None  # of that session

    @property
    def session(self) -> ClientSession:
        """The control channel, opened and logged in when first asked for."""
        if self._session is not None and self._session.is_aborted:  # a listing was left in the middle
            self.close()
        if self._session is None:
            self._session = open_session(self.location, self._options, self._ahead)
            self._ahead = ()
            self._features = self._session.features
        return self._session

    def _full(self, name: str) -> str:
        telnet_escape.learn(self.session, name)
        return self.session.name(name)

    def _refused(self, reply: Reply, what: str, name: str) -> MpxError:
        return reply_error(reply, f"{self.session.peer} cannot {what} {name}", self._refusal)

    @property
    def protection(self) -> Protection:
        """See Endpoint."""
        return protection_of(self.location, self._options.gsi)

    @property
    def capabilities(self) -> Capabilities:
        """See Endpoint."""
        features = self._features
        if features is None:
            return SCHEMES[self.location.scheme]
        if self._announced is None or self._announced[0] is not features:
            best = SCHEMES[self.location.scheme]
            self._announced = features, announced(best, features, self.location.host)
        can, commits = self._announced[1], self._server_commit
        return can if commits is None or commits.sets_times else replace(can, keeps_times=False)

    def find_out(self, *questions: Question) -> Capabilities:
        """See Endpoint. Asks nothing more if it has ever logged in, as the server may be gone meanwhile."""
        if self._features is None or Question.CHECKSUMS in questions:  # which are asked of the session next
            _ = self.session
        can = self.capabilities
        if Question.FALLBACK in questions:
            why = why_mode_s(self.session, downloads=self._refusal is SourceError)
            can = replace(can, fallback=why)
        if Question.LINKS in questions:  # SITE HELP does not tell, so the first half of a link is tried
            tried = self.session.call(command("SITE", "SYMLINKFROM", self.session.home))
            can = replace(can, links=tried.is_accepted)
        return can

    def foresee(self, names: Sequence[str]) -> None:
        """See Endpoint. The questions go out in one write with the login."""
        self._ahead = first_questions(names, stores=self._refusal is DestinationError)

    def check_name(self, name: str) -> None:
        """See Endpoint. Asks nothing, as a listing may be under way."""
        (self._session or self._former or self.session).name(name)

    def measure_rtt(self) -> Rtt | None:
        """See Endpoint."""
        return rtt_of(self.session)

    # --- describing ----------------------------------------------------------------------------------

    def special_source(self, name: str) -> FileInfo:
        """See Endpoint."""
        raise SourceError(f"{name} is not a regular file at {self.location.host}; FTP sends only these")

    def stat(self, name: str, *, follow: bool = True) -> FileInfo | None:
        """See Endpoint."""
        (found,) = self.stats([name], follow=follow)
        if isinstance(found, MpxError):
            raise found
        return found

    def stats(self, names: Sequence[str], *, follow: bool = True) -> list[FileInfo | MpxError | None]:
        """See Endpoint. The questions go out together, and so do those of what MLST leaves open."""
        session = self.session
        full = [self._full(name) for name in names]
        features, is_single = session.features, len(names) == 1
        sized = [asks_size(features, session.ahead, name, is_single=is_single) for name in full]
        replies: list[Reply | None] = [None] * len(names)
        sizes: list[Reply | None] = [None] * len(names)
        if "MLST" in session.features:
            verbs = [("MLST", "SIZE") if each else ("MLST",) for each in sized]
            asked = [command(verb, name) for name, each in zip(full, verbs, strict=True) for verb in each]
            answers = iter(session.pipeline(asked))
            for i, each in enumerate(sized):
                replies[i], sizes[i] = next(answers), next(answers) if each else None
        found: list[FileInfo | MpxError | None] = [None] * len(names)
        unsure = []
        for i, reply in enumerate(replies):
            if reply is None or not (reply.is_ok or is_clear(reply)):
                unsure.append(i)
                continue
            try:
                found[i] = self._described(reply, names[i], follow=follow)
            except self._refusal as error:
                found[i] = error
        sized_by(session, found, full, sizes, self._note)
        if not unsure:
            return found
        others = self._others.ask([full[i] for i in unsure], [replies[i] for i in unsure])
        for i, answer in zip(unsure, others, strict=True):
            if isinstance(answer, MpxError) and answer.may_retry:
                raise answer
            found[i] = answer
            if follow and isinstance(answer, FileInfo) and answer.kind is Kind.LINK:
                found[i] = self._follow(full[i], answer)
        return found

    @property
    def _others(self) -> "OtherQuestions":
        """What the server is asked where MLST tells nothing."""
        if self._other_questions is None:
            from mpx.endpoints.ftp.describe import OtherQuestions

            self._other_questions = OtherQuestions(self.session, self.entries, self._refused)
        return self._other_questions

    def _described(self, reply: Reply, name: str, *, follow: bool) -> FileInfo | None:
        if not reply.is_ok:
            if is_missing(reply):
                return None
            raise self._refused(reply, "describe", name)
        for line in wire.lines_of_facts(reply):
            with contextlib.suppress(ValueError):
                entry = wire.parse_facts(line, is_indented=True)
                if kind_of(entry) is None:
                    return self._asked_otherwise(self._full(name)) or FileInfo(Kind.OTHER)
                info = entry_info(entry, follow=follow)
                if info.kind is Kind.LINK and follow:
                    return self._follow(self._full(name), info)
                return info
        if (found := self._asked_otherwise(self._full(name))) is not None:
            return found
        raise self._refused(reply, "describe", name)

    def _asked_otherwise(self, full: str) -> FileInfo | None:
        """Describe what MLST does not describe well; raises what keeps others from it too."""
        (answer,) = self._others.ask([full], [None])
        if isinstance(answer, MpxError):
            raise answer
        if answer is None or answer.kind is Kind.LINK:
            return None  # it can be neither read nor entered, so it leads nowhere
        if answer.kind is Kind.FOLDER and "MLST" in self.session.features:
            described = self.session.call(command("MLST", f"{full.rstrip('/')}/."))
            for line in wire.lines_of_facts(described):
                with contextlib.suppress(ValueError):
                    info = entry_info(wire.parse_facts(line, is_indented=True))
                    return info if info.kind is Kind.FOLDER else answer
        return answer

    def _follow(self, full: str, info: FileInfo) -> FileInfo | None:
        """Describe what a link points to, where the server describes the link itself."""
        return followed(full, info, partial(self.stat, follow=False), self._asked_otherwise)

    def sizes(self, names: Sequence[str]) -> list[int | None]:
        """See Endpoint. The questions go out together."""
        return stored_sizes(self.session, [self._full(name) for name in names])

    def entries(self, name: str) -> Iterator[tuple[str, FileInfo | MpxError]]:
        """See Endpoint. Over MODE S and a passive data connection, which every server has."""
        from mpx.endpoints.ftp.folder_listing import FolderListing

        full = self._full(name)
        listing = self._listing = self._listing or FolderListing(lambda: self.session, self._note)
        only, peer = "", self.session.peer
        for base, info in listing.entries(full, lambda r: cannot_list(r, peer, name, self._refusal)):
            only = base if listing.count == 1 else ""
            yield base, info
        if only and posixpath.basename(full) == only:
            found = self.stat(full)
            if found is None or found.kind is not Kind.FOLDER:  # MLSD of a file lists that file
                raise self._refusal(f"{self.session.peer} cannot list {name}: it is not a folder")
        if listing.promised > listing.count:
            yield from self._not_listed(full, listing.promised, listing.count)

    def listing_note(self) -> Note | None:
        """See Endpoint."""
        return self._listing.note() if self._listing else None

    def _not_listed(self, full: str, promised: int, listed: int) -> Iterator[tuple[str, FileInfo | MpxError]]:
        """Yield what a Globus server counts but does not list: MLSR knows some of it, MLSD leaves it out."""
        from mpx.endpoints.ftp.symbolic_links import left_out, links_by_mlsr

        self.let_go()  # there may be no other session
        with open_session(self.location, self._options) as other:
            links = links_by_mlsr(other, full, promised, listed, self._refusal)
        yield from left_out(self.session.peer, full, links, promised - listed, self.stats)

    # --- changing ------------------------------------------------------------------------------------

    def make_folders(
        self,
        names: Sequence[str],
        *,
        replace_links: bool = False,  # noqa: ARG002
    ) -> list[bool | MpxError]:
        """See Endpoint. All go out together; only those that are refused are looked at one by one."""
        replies = self.session.pipeline([command("MKD", self._full(name)) for name in names])
        refused = [name for name, reply in zip(names, replies, strict=True) if not reply.is_ok]
        there = dict(zip(refused, self.stats(refused), strict=True))
        results: list[bool | MpxError] = []
        for name, reply in zip(names, replies, strict=True):
            found = there.get(name)
            if reply.is_ok:
                results.append(True)
            elif isinstance(found, FileInfo):
                is_folder = found.kind is Kind.FOLDER
                results.append(False if is_folder else self._refused(reply, "make the folder", name))
            else:
                results.append(found or self._make_parents_too(name, reply))
        return results

    def _make_parents_too(self, name: str, refusal: Reply) -> bool | MpxError:
        """Make a folder that is missing, perhaps for want of the one that it is in."""
        parent = posixpath.dirname(self._full(name).rstrip("/"))
        if parent not in ("", "/") and self.stat(parent) is None:
            made = self._make_parents_too(parent, refusal)
            if isinstance(made, MpxError):
                return made
        reply = self.session.call(command("MKD", self._full(name)))
        if reply.is_ok:
            return True
        found = self.stat(name)  # made meanwhile, as the parent of another
        return (
            False if found and found.kind is Kind.FOLDER else self._refused(refusal, "make the folder", name)
        )

    def unseal(self, names: Sequence[str]) -> dict[str, int]:
        """See Endpoint. What is no one's to change, the server refuses."""
        described = zip(names, map(self._full, names), self.stats(names), strict=True)
        return unseal(self.session, list(described))

    def make_link(self, name: str, target: str) -> str:
        """See Endpoint. A Globus server makes absolute links, and only to what exists."""
        from mpx.endpoints.ftp.symbolic_links import make_link

        full = self._full(name)
        absolute = self._full(posixpath.normpath(posixpath.join(posixpath.dirname(full), target)))
        if (refusal := make_link(self.session, full, absolute)) is not None:
            raise self._refused(refusal, f"make the symbolic link to {target}", name)
        return absolute

    def remove(self, name: str) -> None:
        """See Endpoint."""
        reply = self.session.call(command("DELE", self._full(name)))
        if not reply.is_ok and not is_missing(reply) and self.stat(name, follow=False):
            raise self._refused(reply, "remove", name)

    def commit(self, files: Sequence[Commit], note: OnNote) -> list[Exception | None]:
        """See Endpoint. A server cannot be asked to sync."""
        return self._committing.commit(files, note)

    def set_times(self, folders: Sequence[Stamp], note: OnNote) -> None:
        """See Endpoint. All go out together."""
        self._committing.set_times(folders, note)

    @property
    def _committing(self) -> ServerCommit:
        """What gives files of this server their names."""
        if self._server_commit is None:
            self._server_commit = ServerCommit(self.session, self._refused, self.stats)
        return self._server_commit

    # --- checking ------------------------------------------------------------------------------------

    def checksums(
        self, algorithm: str, parts: Sequence[Part], stop: Callable[[], bool]
    ) -> list[str | Exception]:
        """See Endpoint. All go out ahead; each may take as long as its progress markers keep coming."""
        full = [replace(part, name=self._full(part.name)) for part in parts]
        if self._checksum_questions is None:
            self._checksum_questions = ChecksumQuestions(
                lambda: self.session, lambda reply, name: self._refused(reply, "checksum", name)
            )
        # The commit describes a source once more when it is proven: of few files that costs no round trip.
        is_described = self._refusal is SourceError and "MLST" in self.session.features
        return self._checksum_questions.ask(algorithm, full, stop, descriptions(full) if is_described else ())

    def free_bytes(self, name: str) -> int | None:  # noqa: ARG002  GridFTP has no question for it
        """See Endpoint."""
        return None

    def pause(self) -> None:
        """See Endpoint."""
        if self._listing is not None:
            self._listing.read_ahead()
        if self._options.pool is not None and self._options.pool.is_wanted:
            self.let_go()

    def let_go(self) -> None:
        """See Endpoint."""
        session, pool = self._session, self._options.pool
        if session is None or pool is None:
            return
        if self._listing is not None and not self._listing.read_ahead():
            if not (pool.takes_turns or pool.is_wanted):
                return
            self._listing.give_up()
        self._session = self._other_questions = self._server_commit = None
        self._former = session
        pool.give_back(session)

    def close(self) -> None:
        """See Endpoint."""
        if self._session:
            self._session.close()
            self._session = self._listing = self._other_questions = None
            self._server_commit = self._checksum_questions = None
