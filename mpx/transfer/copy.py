"""copy(): copies files from one endpoint to another, start to end. Reads as the list of its steps."""

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from mpx.endpoints.schemes import reached
from mpx.engine.capabilities import PartsUp, Question, StreamKind
from mpx.engine.path_set import DEFAULT_PATH
from mpx.engine.retry import Retry, ServerBusy, why_again
from mpx.engine.stop import Failure
from mpx.errors import (
    InboundBlocked,
    MpxError,
    NameNotCarried,
    OffsetsUnproven,
    PartialFailure,
    ThirdPartyRefused,
    UsageError,
)
from mpx.location import Location, parse_location
from mpx.options import CopyOptions
from mpx.report import OnProgress, Report, Severity, before_data
from mpx.transfer.between_servers import after_refusal, choose_between
from mpx.transfer.committed_names import CommittedNames
from mpx.transfer.destination_lookup import are_there
from mpx.transfer.early_start import EarlyStart
from mpx.transfer.ends import Ends
from mpx.transfer.fallback import (
    no_more_than_files,
    to_mode_s,
    to_object_parts,
    to_stored_parts,
    to_whole_files,
    to_whole_uploads,
    without_streams,
)
from mpx.transfer.journal import Journal
from mpx.transfer.local_collection import in_collection
from mpx.transfer.option_checks import check_checksum, note_unverified
from mpx.transfer.planner import described_first, pair_up
from mpx.transfer.records import Records
from mpx.transfer.rehearsal import rehearse
from mpx.transfer.scan import Pair
from mpx.transfer.sent_notes import SentNotes
from mpx.transfer.told_apart import told_apart
from mpx.transfer.transport import Transport, choose_transport
from mpx.transfer.whole_copies import to_whole_copies
from mpx.transfer.wiring import Attempt
from mpx.units import counted, format_duration

if TYPE_CHECKING:  # few copies use several paths
    from mpx.multipath.paths_in_use import Multipath

Answer = TypeVar("Answer")
Name = str | os.PathLike[str]


def copy(
    sources: Name | Sequence[Name],
    destination: Name,
    options: CopyOptions | None = None,
    *,
    targets: Sequence[str | None] | None = None,
    on_begun: Callable[[Report], None] | None = None,
    on_progress: OnProgress | None = None,
    on_rehearsed: Callable[[str], None] | None = None,
    cancel: threading.Event | None = None,
) -> Report:
    """Copy files and, with `recursive`, folders; return the report.

    A name is that of a file of this host (text or a path), or a URL. With `targets` the destination is a
    folder, and each source gets that name below it (None: its own). `on_begun` is called with the report
    before it is filled, `on_rehearsed` with a line for each thing that a dry run would do. `cancel` stops the
    copy within a second; what has arrived stays, and the next run continues. Works from any thread, installs
    no signal handler and prints nothing.

    Raises MpxError, whose `report` then holds what was done.
    """
    given = [sources] if isinstance(sources, str | os.PathLike) else sources
    names = [os.fspath(name) for name in given]
    if not names:
        raise UsageError("nothing to copy; name at least one source")
    if targets is not None and len(targets) != len(names):
        both = f"{counted(len(names), 'source')} and {counted(len(targets), 'target')}"
        raise UsageError(f"{both}: there must be one for each")
    places = [parse_location(name).absolute() for name in (*names, os.fspath(destination))]
    told = told_apart(places[:-1], targets)
    run = Copy(told, places[-1], options or CopyOptions(), cancel or threading.Event())
    return run.run(targets, on_begun, on_progress, on_rehearsed)


class Copy:
    """One copy: its steps, and what has to be closed after them."""

    def __init__(
        self,
        sources: Sequence[Location],
        destination: Location,
        options: CopyOptions,
        cancel: threading.Event,
        early: EarlyStart | None = None,
    ) -> None:
        """Places are absolute. `early`: what was begun for it before. Raises UsageError: see `reached`."""
        self.options = options
        *sources, destination = reached((*sources, destination), options.via)
        self.sources, self.destination = in_collection(sources, destination, options)
        self.early = early
        self.report = Report(
            " ".join(map(str, self.sources)),
            str(self.destination),
            dry_run=options.dry_run,
            settings=options.of_speed(),
        )
        self.failure = Failure(threading.Event(), cancel)
        self.ends: Ends | None = None
        self.journal: Journal | None = None
        self.multipath: Multipath | None = None
        self.on_progress: OnProgress | None = None

    def run(
        self,
        targets: Sequence[str | None] | None = None,
        on_begun: Callable[[Report], None] | None = None,
        on_progress: OnProgress | None = None,
        on_rehearsed: Callable[[str], None] | None = None,
    ) -> Report:
        """Do it, and return the report; see `copy`."""
        self.on_progress = on_progress
        if on_begun:
            on_begun(self.report)
        try:
            self.copy(targets, on_progress, on_rehearsed or (lambda _: None))
            self.report.done()
        except MpxError as error:
            self.report.ended_by(error)
            error.report = self.report
            raise
        finally:
            self.report.close()
            self.close()
        return self.report

    def copy(
        self,
        targets: Sequence[str | None] | None,
        on_progress: OnProgress | None,
        on_rehearsed: Callable[[str], None],
    ) -> None:
        """Do it, step by step."""
        self.ends = ends = Ends(
            self.sources,
            self.destination,
            self.options,
            lambda: self.failure.is_stopping,
            self.report.note,
            self.early,
        )
        ends.choose_protocol()
        names = [source.name for source in self.sources]
        ends.source.foresee(described_first(names, self.destination.name, at_source=True))
        ends.destination.foresee(described_first(names, self.destination.name, at_source=False))
        transport = self.choose_transport(ends)
        self.find_paths(ends, transport)
        transport = self.probe_first(ends, transport, on_progress)
        pairs = self.pair_up(ends, transport, targets)
        if self.options.dry_run:
            first_error = self.rehearse(ends, transport, pairs, on_rehearsed)
        else:
            self.when_not_busy(partial(self.check_checksum, ends, transport, pairs))
            first_error = self.move(ends, transport, pairs, on_progress)
        self.judge(first_error)

    def choose_transport(self, ends: Ends) -> Transport:
        """Connect, and decide how data moves."""
        self.failure.check_user()
        options = self.options
        if not (ends.is_local or ends.is_between_servers or ends.far.capabilities.owns_streams):
            options = without_streams(options, ends, self.report)
        transport = self.when_not_busy(partial(choose_transport, options, ends, self.report))
        if ends.far.capabilities.streams is StreamKind.COPIES:
            transport = self.when_not_busy(partial(to_whole_copies, transport, ends, self.report))
        elif ends.is_between_servers:
            transport = self.when_not_busy(partial(choose_between, transport, ends, self.report))
        elif not ends.far_is_source and ends.far.capabilities.parts_up is PartsUp.NUMBERED:
            transport = to_object_parts(transport, self.report)
        elif not ends.far_is_source and ends.far.capabilities.parts_up in (PartsUp.NONE, PartsUp.TRIED):
            transport = self.when_not_busy(partial(to_whole_uploads, transport, ends, self.report))
        elif not ends.far_is_source and ends.far.capabilities.parts_up is PartsUp.IN_TURN:
            transport = replace(transport, one_stream_each=True)
        elif why := ends.far.find_out(Question.FALLBACK).fallback:
            transport = to_mode_s(transport, ends, self.report, why)
        note_unverified(transport.checksums, self.report)
        self.failure.check_user()
        return transport

    def find_paths(self, ends: Ends, transport: Transport) -> None:
        """Ask the controller for paths, if there is one; what that does not give is noted, or refused."""
        url = self.options.controller
        if url is None or self.options.dry_run:
            return
        from mpx.sdn_client import find_paths

        self.multipath = find_paths(
            url,
            transport.options,
            transport.rtt if transport.mode_e else None,
            far_is_source=ends.far_is_source,
            open_session=ends.open_path_probe,
            report=self.report,
        )
        self.failure.check_user()

    def probe_first(self, ends: Ends, transport: Transport, on_progress: OnProgress | None) -> Transport:
        """Probe each path before anything moves, and decide what it begins with, where that is asked for."""
        if self.options.probe_first_s is None or self.options.dry_run:
            return transport
        from mpx.transfer.first_probe import probe_first
        from mpx.transfer.watched_path import WatchedPath

        names = self.multipath.known.names if self.multipath else (DEFAULT_PATH,)
        paths = {name: WatchedPath(name, ends, transport, self.multipath) for name in names}
        if on_progress:
            lasts = format_duration(self.options.probe_first_s)
            on_progress(before_data(self.report.elapsed_s, f"probing for {lasts} before data move"))
        found = probe_first(transport, ends, paths, self.report.note, self.failure.by_user)
        self.failure.check_user()
        return found

    def pair_up(self, ends: Ends, transport: Transport, targets: Sequence[str | None] | None) -> list[Pair]:
        """Decide what becomes what."""
        names = [source.name for source in self.sources]
        to, options = self.destination.name, transport.options
        return self.when_not_busy(
            partial(pair_up, names, targets, to, ends.source, ends.destination, options)
        )

    def when_not_busy(self, question: Callable[[], Answer]) -> Answer:
        """Ask a server for the first time, once more where it says that it is busy."""
        retry = Retry(self.options.retries, self.failure.stopping)
        while True:
            try:
                return question()
            except ServerBusy as error:
                if self.on_progress and retry.next_attempt <= self.options.retries:
                    asked = f"{why_again(error)}; asked again, attempt {retry.next_attempt}"
                    said = f"{asked} of {self.options.retries}: {error}"  # a line may be cut at its end
                    self.on_progress(before_data(self.report.elapsed_s, said))
                retry.again(error)

    def check_checksum(self, ends: Ends, transport: Transport, pairs: Sequence[Pair]) -> None:
        """Refuse a checksum that was asked for by hand if the server does not compute it after all."""
        sources = [(name, info) for name, _, info in pairs]
        for end in {ends.near, ends.far} if ends.is_between_servers else {ends.far}:
            if end is ends.source and transport.checksums.of_passed(None):
                continue  # what passes here has it
            known = sources if end is ends.source else []
            check_checksum(transport.checksums, self.options, end, known, self.destination.name)

    def rehearse(
        self, ends: Ends, transport: Transport, pairs: Sequence[Pair], on_rehearsed: Callable[[str], None]
    ) -> MpxError | None:
        """Say what would be done; return the error of the first file that could not be copied."""
        while True:
            try:
                return rehearse(pairs, ends, transport.options, self.failure, self.report, on_rehearsed)
            except NameNotCarried as error:
                transport = self.fall_back(ends, transport, error)

    def move(
        self, ends: Ends, transport: Transport, pairs: Sequence[Pair], on_progress: OnProgress | None
    ) -> MpxError | None:
        """Move the data, with a fallback as often as one is needed; return the error of the first file.

        Raises what ends the whole copy.
        """
        counts_on = self.options.overwrite != "always"
        server = ends.server_url
        self.journal = Journal(
            self.report.source, self.report.destination, server=server, counts_on=counts_on
        )
        # What is uploaded never begins anew.
        committed = CommittedNames(are_kept=ends.far_is_source or ends.is_between_servers)
        notes = SentNotes(self.destination, server)
        records = Records(self.report, self.journal, notes, committed)
        infos = [info for _, _, info in pairs]
        transport = self.when_not_busy(
            partial(
                to_stored_parts,
                transport,
                ends,
                infos,
                lambda: are_there(
                    pairs,
                    ends.source,
                    ends.destination,
                    self.options,
                    notes,
                    keeps_times=ends.destination.find_out().keeps_times,
                ),
            )
        )
        while True:
            attempt = Attempt(
                pairs,
                ends,
                no_more_than_files(transport, ends, infos),
                records,
                self.failure,
                multipath=self.multipath,
                on_progress=on_progress,
            )
            try:
                return attempt.run()
            except (InboundBlocked, NameNotCarried, OffsetsUnproven, ThirdPartyRefused) as error:
                transport = self.fall_back(ends, transport, error)
                committed.start_over()

    def fall_back(
        self,
        ends: Ends,
        transport: Transport,
        error: InboundBlocked | NameNotCarried | OffsetsUnproven | ThirdPartyRefused,
    ) -> Transport:
        """Return how to begin anew after what a server has shown: it cannot connect, or sends other parts.

        Raises OffsetsUnproven where whole files have been asked for already, UsageError where there is no
        other way.
        """
        if isinstance(error, OffsetsUnproven) and not transport.parts:
            raise error
        ends.disconnect()  # whoever was stopped may have left answers unread
        self.report.start_over()
        self.failure = Failure(threading.Event(), self.failure.by_user)
        if isinstance(error, NameNotCarried):
            ends.turn_to_sftp(error)
            return self.choose_transport(ends)
        if isinstance(error, OffsetsUnproven):
            self.leave_paths("")
            return to_whole_files(transport, self.report, str(error))
        if isinstance(error, ThirdPartyRefused):
            return after_refusal(transport, ends, self.report, str(error))
        self.report.note(str(error))
        why = f"{ends.host} cannot connect to us"
        self.leave_paths(why)
        return to_mode_s(transport, ends, self.report, why)

    def leave_paths(self, why: str) -> None:
        """Use one path from now on."""
        if self.multipath is None:
            return
        self.multipath.close()
        self.multipath = None
        if why:
            self.report.note(f"one path is used: {why}", Severity.NOTICE)

    def judge(self, first_error: MpxError | None) -> None:
        """Raise what the failed files amount to."""
        files = self.report.files
        if first_error and files.total == 1:
            raise first_error
        if first_error:
            raise PartialFailure(
                f"{files.failed} of {files.total} files were not copied; the first: {first_error}"
            )

    def close(self) -> None:
        """Close everything."""
        self.failure.cancel.set()
        if self.multipath:
            self.multipath.close()
        if self.ends:
            self.ends.close()
        if self.journal:
            self.journal.close()
