"""copy(): moves files from one endpoint to another, start to end. Reads as the list of its steps."""

import contextlib
import functools
import math
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mpx import choices
from mpx.endpoints.ftp.extensions.congestion import why_not_far
from mpx.endpoints.ftp.session_pool import SessionPool
from mpx.engine.carrier import Carrier, CarrierContext
from mpx.engine.chunk_gate import ChunkGate
from mpx.engine.endpoint import Endpoint, FileInfo
from mpx.engine.file_queue import FileQueue
from mpx.engine.path_set import PathSet
from mpx.engine.rate_limiter import RateLimiter
from mpx.engine.stop import Failure, unexpected
from mpx.engine.stream_paths import DefaultPath
from mpx.errors import (
    ConnectionLost,
    InboundBlocked,
    Interrupted,
    MpxError,
    OffsetsUnproven,
    PartialFailure,
    TransferTimeout,
    UsageError,
)
from mpx.files.guarded_folders import LocalFolders
from mpx.location import Location, parse_location
from mpx.net import congestion_control, mptcp, tcp
from mpx.options import CopyOptions
from mpx.recognition.policy import CUBIC, why_not_from
from mpx.report import Report
from mpx.rtt.prober import Prober, beside_listing
from mpx.transfer.commit import Committer
from mpx.transfer.congestion_plan import Plan, plan
from mpx.transfer.control_loop import ControlLoop, OnProgress
from mpx.transfer.journal import Journal
from mpx.transfer.option_checks import (
    check_checksum,
    check_congestion,
    check_links,
    check_options,
    choose_checksums,
    in_whole_files,
    within_mode_s,
)
from mpx.transfer.planner import pair_up
from mpx.transfer.registry import carrier_for, check_pair, open_endpoint
from mpx.transfer.resume_proof import ResumeVerifier
from mpx.transfer.retrying import RetryingEndpoint
from mpx.transfer.scan import Lister, Pair, decided, rehearse, tasks
from mpx.transfer.sent_notes import SentNotes
from mpx.transfer.tuner_choice import beginning, sessions_of, tuners
from mpx.units import counted

if TYPE_CHECKING:  # imported by the steps that need them, as few copies do
    from mpx.multipath.paths_in_use import Multipath
    from mpx.recognition.monitor import BackgroundMonitor
    from mpx.recognition.scavenger import Scavenger
    from mpx.recognition.watch import RttWatch

PROBE_CONNECT_S, PROBE_REPLY_S = 1.0, 3.0  # over a path that may be lost


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
    tell = on_rehearsed or (lambda _: None)
    run = _Copy(names, os.fspath(destination), options or CopyOptions(), targets, on_progress, tell, cancel)
    if on_begun:
        on_begun(run.report)
    try:
        run.copy()
        run.report.done()
    except MpxError as error:
        run.report.ended_by(error)
        error.report = run.report
        raise
    finally:
        run.report.close()
        run.close()
    return run.report


class _Copy:
    """One copy: what its steps share."""

    def __init__(
        self,
        sources: list[str],
        destination: str,
        options: CopyOptions,
        targets: Sequence[str | None] | None,
        on_progress: OnProgress | None,
        tell: Callable[[str], None],
        cancel: threading.Event | None,
    ) -> None:
        self.options = options
        self.sources = [parse_location(source).absolute() for source in sources]
        self.destination = parse_location(destination).absolute()
        self.targets = targets
        self.report = Report(" ".join(map(str, self.sources)), str(self.destination), dry_run=options.dry_run)
        self.on_progress = on_progress
        self.tell = tell
        self.cancel = cancel or threading.Event()
        self.failure = Failure(threading.Event())
        self.sessions = SessionPool(self.report.note)
        self.far_is_source = self.sources[0].scheme != "file"
        self.over_mptcp = False  # streams are of Multipath TCP
        self.parts = True  # of files are asked for, where the server can begin within one
        self.mode_e = True  # data moves in MODE E, if a network is in between at all
        self.first_error: MpxError | None = None  # of files that could not be copied
        self.folders = LocalFolders()  # of the destination, where that is this host
        self.endpoints: list[Endpoint] = []  # to be closed at the end; whoever opens more closes them
        self.journal: Journal | None = None
        self.multipath: Multipath | None = None
        self.watch: RttWatch | None = None  # probes the path beside the copy

    def copy(self) -> None:
        """Do it, step by step."""
        steps = (self.resolve, self.choose_transport, self.measure, self.check_options, self.find_paths)
        for step in steps:
            step()
            if self.cancel.is_set():
                raise Interrupted
        pairs = self.pair_up()
        if self.options.dry_run:
            self.rehearse(pairs)
        else:
            sources = [(name, info) for name, _, info in pairs] if self.far_is_source else []
            check_checksum(self.choice, self.options, self.far_end, sources, self.destination.name)
            self.journal = Journal(self.report.source, self.report.destination)
            self.move_somehow(pairs, self.journal)
            self.first_error = self.finisher.first_error
        self.judge()

    def resolve(self) -> None:
        """Find both endpoints and make sure that a carrier serves them."""
        if len({source.endpoint for source in self.sources}) > 1:
            raise UsageError("all sources of one copy must be at one endpoint; copy them apart")
        check_pair(self.sources[0], self.destination)
        self.source_end = self.open_source()
        self.endpoints.append(self.source_end)
        self.destination_end = self.open_destination()
        self.endpoints.append(self.destination_end)
        self.far_end = self.source_end if self.far_is_source else self.destination_end

    def open_source(self) -> Endpoint:
        """Open the source endpoint once more."""
        return self._open(self.sources[0], writing=False)

    def open_destination(self) -> Endpoint:
        """Open the destination endpoint once more."""
        return self._open(self.destination, writing=True)

    def _open(self, location: Location, *, writing: bool, waits_for_turn: bool = True) -> Endpoint:
        return open_endpoint(
            location,
            self.options,
            self._stopping,
            writing=writing,
            note=self.report.note,
            pool=self.sessions,
            waits_for_turn=waits_for_turn,
            folders=self.folders if writing else None,
        )

    def _stopping(self) -> bool:
        return self.failure.cancel.is_set() or self.cancel.is_set()

    def choose_transport(self) -> None:
        """Have plain TCP where this kernel cannot do what was asked for."""
        self.over_mptcp = (
            self.options.transport == choices.TRANSPORT and self.far_end.location.scheme != "file"
        )
        if self.over_mptcp and (why := mptcp.why_not()):
            self.report.note(f"plain TCP instead of Multipath TCP: this kernel cannot, {why}")
            self.over_mptcp = False
        if self.over_mptcp:
            self.report.mptcp = []

    def stream_ended(self, subflows: int) -> None:
        """Note what a stream of Multipath TCP was."""
        self.report.stream_ended(subflows)
        if not subflows:
            self.report.note(
                f"plain TCP instead of Multipath TCP: {self.far_end.location.host} does not speak it"
            )

    def measure(self) -> None:
        """Learn the RTT on the control channel; its first use also connects and logs in."""
        self.rtt = rtt = self.far_end.measure_rtt()
        we_send = self.destination.scheme != "file"  # else the server does, or nobody
        kernels = rtt.congestion if rtt and we_send else None  # routes may differ
        self.plan = self.plan_congestion()
        if self.plan.note:
            self.report.note(self.plan.note)
        if self.over_mptcp and self.plan.selects:  # what is read is one path, and dips need a pace
            self.plan = replace(self.plan, selects=False)
            self.report.note("the background is not read over Multipath TCP, which has several paths")
        self.congestion = self.plan.congestion or kernels
        self.report.decisions = {
            "rtt_s": rtt.asked_s if rtt else None,
            "tcpi_rtt_s": rtt.kernel_s if rtt else None,
            "congestion": self.congestion,
        }

    def plan_congestion(self) -> Plan:
        """Return what the streams begin with, and whether the background decides later."""
        if self.far_end.location.scheme == "file":
            return Plan(None)
        why_not, why_not_open = self.why_not_congestion(), self.why_not_congestion(are_open=True)
        return plan(self.options.congestion, self.options.policy, why_not, why_not_open)

    def why_not_congestion(self, *, are_open: bool = False) -> Callable[[str], str] | None:
        """Return what says why a congestion control may not be used; None where the sender is not told.

        `are_open`: of streams that are to be switched.
        """
        if self.far_is_source:
            return why_not_far(self.far_end.congestions())
        route, is_locked = (self.rtt.congestion, self.rtt.congestion_is_fixed) if self.rtt else (None, False)
        return why_not_from(
            route, congestion_control.why_not_congestion, is_locked=is_locked, are_open=are_open
        )

    def check_options(self) -> None:
        """Refuse what was asked for by hand and cannot be had; note which defaults cannot."""
        check_options(self.options, self.far_end, far_is_source=self.far_is_source)
        check_congestion(self.options, self.source_end, self.why_not_congestion())
        check_links(self.options, self.destination_end)
        if self.far_end.location.scheme != "file" and not self.far_end.can_mode_e():
            self.turn_to_mode_s(f"{self.far_end.location.host} has no MODE E")
        self.choice = choose_checksums(self.options, self.far_end, self.report)

    def find_paths(self) -> None:
        """Ask the controller for paths, if there is one; what that does not give is noted, or refused."""
        url = self.options.controller
        if url is None or self.options.dry_run:
            return
        from mpx.sdn_client import find_paths

        self.multipath = multipath = find_paths(
            url,
            self.options,
            self.rtt if self.mode_e else None,
            far_is_source=self.far_is_source,
            open_session=self.open_probe,
            report=self.report,
        )
        if multipath and self.plan.selects:
            self.plan = replace(self.plan, selects=False)
            self.report.note(
                "the background of several paths is not read: streams keep their congestion control"
            )

    def open_probe(self, bound: Callable[[int], None]) -> Endpoint:
        """Open the far endpoint for questions that are soon answered or not at all; see Multipath."""
        location, writing = (self.sources[0], False) if self.far_is_source else (self.destination, True)
        soon = replace(self.options, connect_timeout_s=PROBE_CONNECT_S, timeout_s=PROBE_REPLY_S)
        return open_endpoint(location, soon, self._stopping, writing=writing, bound=bound)

    def turn_to_mode_s(self, why: str) -> None:
        """Go on in MODE S; raises UsageError if that cannot honour what was asked for by hand."""
        self.mode_e = False
        if self.multipath:
            self.multipath.close()
            self.multipath = None
            self.report.note(f"one path is used: {why}")
        if self.far_is_source:  # no server is told there
            self.plan = replace(self.plan, congestion=None, selects=False)
            self.congestion = self.report.decisions["congestion"] = None
        self.options = within_mode_s(
            self.options,
            self.report,
            why=why,
            uploads=not self.far_is_source,
            restarts=self.far_end.can_restart(),
        )

    def turn_to_whole_files(self, why: str) -> None:
        """Go on in MODE S, with one stream for each file, as what begins within a file is not believed."""
        self.mode_e = self.parts = False
        if self.multipath:
            self.multipath.close()
            self.multipath = None
        self.choice.is_required = self.choice.is_by_hand  # nothing is relied on any more
        self.plan = replace(self.plan, congestion=None, selects=False)
        self.congestion = self.report.decisions["congestion"] = None
        self.options = in_whole_files(self.options, self.report, why=why)

    def pair_up(self) -> list[Pair]:
        """Decide what becomes what."""
        names = [source.name for source in self.sources]
        return pair_up(
            names, self.targets, self.destination.name, self.source_end, self.destination_end, self.options
        )

    def rehearse(self, pairs: list[Pair]) -> None:
        """Tell what would be done, and do nothing of it."""
        asking = RetryingEndpoint(self.source_end, self.options.retries, self.cancel)
        listed = tasks(pairs, asking, self.options, note=self.report.note)
        notes = SentNotes(self.destination)
        for task in decided(listed, self.source_end, self.destination_end, self.options, notes):
            if self.cancel.is_set():
                raise Interrupted
            self.tell(rehearse(task, self.report))
            self.first_error = self.first_error or task.error

    def move_somehow(self, pairs: list[Pair], journal: Journal) -> None:
        """Move in MODE E if the server can; if it turns out that it cannot reach us, in MODE S.

        And in whole files, if it turns out that a server does not begin where it is asked to.
        """
        try:
            self.move(pairs, journal)
        except (InboundBlocked, OffsetsUnproven) as error:
            if isinstance(error, OffsetsUnproven) and not self.parts:
                raise
            for endpoint in self.endpoints:
                endpoint.close()  # whoever was stopped may have left answers unread; it connects again
            self.report.start_over()
            self.failure = Failure(threading.Event())
            if isinstance(error, InboundBlocked):
                self.report.note(str(error))
                self.turn_to_mode_s(f"{self.far_end.location.host} cannot connect to us")
            else:
                self.turn_to_whole_files(str(error))
            self.move_somehow(pairs, journal)

    def move(self, pairs: list[Pair], journal: Journal) -> None:
        """Run lister, carrier and finisher side by side until all is settled or the copy fails."""
        options, failure = self.options, self.failure
        notes = SentNotes(self.destination)
        pool, gate, may_spread = FileQueue(failure.cancel), ChunkGate(), threading.Event()
        self.finisher = finisher = Committer(
            open_source=self.open_source,
            open_destination=self.open_destination,
            far_is_source=self.far_is_source,
            choice=self.choice,
            pool=pool,
            session_pool=self.sessions,
            failure=failure,
            journal=journal,
            report=self.report,
            retries=options.retries,
            sessions=options.max_sessions,
            notes=notes,
            connected=may_spread.set,
        )
        prover = ResumeVerifier(
            self.open_source if self.far_is_source else self.open_destination,
            far_is_source=self.far_is_source,
            forgot=finisher.forgot,
            note=self.report.note,
            stop=self._stopping,
        )
        work = CarrierContext(
            options=options,
            pool=pool,
            pacer=RateLimiter(failure.cancel, options.rate_bps),
            gate=gate,
            failure=failure,
            whole=finisher.whole,
            given_up=finisher.given_up,
            forgot=finisher.forgot,
            note=self.report.note,
            prove=prover,
            verifies=self.choice.rely,
            describe=self.describe,
            may_spread=may_spread,
            over_mptcp=self.over_mptcp,
            subflows=self.stream_ended,
            congestion=self.plan.congestion,
            paths=self.multipath.paths if self.multipath else DefaultPath(),
            source_ports=tcp.ports(options.source_ports, "GLOBUS_TCP_SOURCE_RANGE"),
            listen_ports=tcp.ports(options.port_range, "GLOBUS_TCP_PORT_RANGE"),
        )
        lister = Lister(
            pairs,
            options=options,
            source_end=self.source_end,
            destination_end=self.destination_end,
            pool=pool,
            failure=failure,
            journal=journal,
            finisher=finisher,
            report=self.report,
            prove=prover,
            notes=notes,
            folders=self.folders,
            sums=self.choice.best,
        )
        carrier = carrier_for(
            self.sources[0],
            self.destination,
            work,
            mode_e=self.mode_e,
            restarts=self.parts and self.far_end.can_restart(),
            sessions=sessions_of(self.options, self.known_paths),
            pool=self.sessions,
            congestions=self.far_end.congestions(),
        )
        another = functools.partial(
            self._open, self.far_end.location, writing=not self.far_is_source, waits_for_turn=False
        )
        probe = Prober(
            "mpx-rtt",
            beside_listing(self.far_end, lister, another) if self.rtt else (),
            first=self.rtt,
            is_needed=lambda: self.sessions.takes_turns,
        )
        multipath = self.multipath
        selects, yields = self.mode_e and self.plan.selects, self.plan.yields
        self.watch = self.rtt_watch(carrier if selects else None) if yields else None
        watcher = ControlLoop(
            carrier=carrier,
            tuners=tuners(self.options, self.known_paths) if carrier.tunable and not yields else {},
            pool=pool,
            gate=gate,
            failure=failure,
            finisher=finisher,
            report=self.report,
            rtt=multipath.rtt if multipath else lambda _: probe.measured.rtt,
            congestion=self.congestion,
            congestion_refused=work.congestion_refused,
            begin_selection=functools.partial(self.selection, carrier) if selects else None,
            scavenger=self.scavenger(self.watch, work.pacer, may_spread) if self.watch else None,
            multipath=multipath,
            on_progress=self.on_progress,
            cancel=self.cancel,
        )
        if multipath:
            multipath.start(may_spread)
        watcher.start(*beginning(self.options, self.known_paths, yields=yields))
        try:
            self.run(carrier, finisher, lister, probe, watcher)
        finally:
            pool.release()
            if self.watch:
                self.watch.end()
            if multipath:
                multipath.close()
        lister.finish()

    @property
    def known_paths(self) -> PathSet | None:
        """What a controller said of the paths of this copy; None: there is one path."""
        return self.multipath.known if self.multipath else None

    def describe(self, name: str) -> FileInfo | None:
        """Describe a source over a session of its own."""
        with contextlib.closing(self.open_source()) as end:
            found = end.stat(name)
            end.let_go()
            return found

    def rtt_watch(self, pulsed: Carrier | None) -> "RttWatch | None":
        """Return what probes the path beside the copy, not begun yet, with pulses in what `pulsed` moves."""
        rtt = self.rtt
        if rtt is None or rtt.address is None:
            return None
        from mpx.recognition.pulses.local_pacing import LocalPacer
        from mpx.recognition.pulses.maker import PulseMaker
        from mpx.recognition.pulses.remote_pacing import RemotePacer
        from mpx.recognition.watch import RttWatch

        pacer = RemotePacer if self.far_is_source else LocalPacer
        pulses = PulseMaker(pacer(pulsed.connections)) if pulsed else None
        kernel_s = rtt.kernel_s or math.inf
        host = self.far_end.location.host
        return RttWatch(host, rtt.address, asked_s=rtt.asked_s, kernel_s=kernel_s, pulses=pulses)

    def scavenger(self, watch: "RttWatch", pacer: RateLimiter, may_probe: threading.Event) -> "Scavenger":
        """Return who keeps the copy from being in the way of others."""
        from mpx.recognition.scavenger import Scavenger

        return Scavenger(watch, pacer, may_probe.is_set)

    def selection(self, carrier: Carrier, began_s: float) -> "BackgroundMonitor | None":
        """Return who reads the background and says when to switch; None where there is no path to probe.

        Bytes move since `began_s` (monotonic clock).
        """
        self.watch = self.watch or self.rtt_watch(carrier)
        if self.watch is None:
            return None
        from mpx.ops_classifier import load_model
        from mpx.recognition.monitor import BackgroundMonitor, Loading
        from mpx.recognition.switching import SwitchHysteresis

        congestion = self.plan.congestion or CUBIC
        why_not = functools.cache(self.why_not_congestion(are_open=True) or str)  # each takes a socket
        chooser = SwitchHysteresis(self.options.policy, congestion, why_not)
        return BackgroundMonitor(Loading(load_model), self.watch, chooser, congestion, began_s)

    def run(
        self, carrier: Carrier, finisher: Committer, lister: Lister, probe: Prober, watcher: ControlLoop
    ) -> None:
        """Start everything, watch, and stop everything; raises what ended the copy."""
        begun: list[Carrier | Committer | Lister | Prober] = []
        try:
            for part in (carrier, finisher, lister, probe):
                part.start()
                begun.append(part)
            watcher.watch()
        except (MemoryError, RuntimeError) as error:  # RuntimeError: no thread is left
            self.failure.set(unexpected(error))
        except BaseException:
            self.failure.set(MpxError("stopped"))
            raise
        finally:
            if self.failure.cancel.is_set():
                carrier.stop()
                if self.multipath:
                    self.multipath.stop()
            for part in begun:
                if isinstance(part, Prober):
                    part.end()
                part.join()
            self.journal_the_rest()
        if self.failure.error:
            raise self.resumable(self.failure.error)

    def resumable(self, error: MpxError) -> MpxError:
        """Return the error of a server that was lost for good so that it says what becomes of the copy."""
        if not error.may_retry or isinstance(error, InboundBlocked) or not self.options.resume:
            return error
        kind = TransferTimeout if isinstance(error, TransferTimeout) else ConnectionLost
        return kind(f"{error}; what arrived is kept: copy the same SRC to the same DST again to continue")

    def journal_the_rest(self) -> None:
        """Tell the journal what arrived last; what it cannot be told is proven by checksum next time."""
        try:
            self.finisher.journal_arrivals()
        except MpxError as error:
            self.report.note(str(error))

    def judge(self) -> None:
        """Raise what the failed files amount to."""
        error, files = self.first_error, self.report.files
        if error and files.total == 1:
            raise error
        if error:
            raise PartialFailure(f"{files.failed} of {files.total} files were not copied; the first: {error}")

    def close(self) -> None:
        """Let go of everything."""
        self.failure.cancel.set()
        if self.multipath:
            self.multipath.close()
        for endpoint in self.endpoints:
            endpoint.close()
        self.folders.close()
        self.sessions.close()
        if self.journal:
            self.journal.close()
