"""The threads of one attempt to copy, made from what the steps have decided, and wired to each other."""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mpx.choices import SERVICE, port_range
from mpx.engine.capabilities import StreamKind
from mpx.engine.carrier import Carrier, CarrierContext, ServerEvents, StreamSettings
from mpx.engine.endpoint import Kind
from mpx.engine.file_queue import FileQueue
from mpx.engine.path_control import controls
from mpx.engine.stop import Failure, unexpected
from mpx.engine.stream_paths import DefaultPath
from mpx.engine.tuner import Sample
from mpx.errors import ConnectionLost, InboundBlocked, MpxError, ThirdPartyRefused, TransferTimeout
from mpx.net.socket_buffers import largest_window_bytes
from mpx.options import CopyOptions
from mpx.report import OnProgress
from mpx.rtt.prober import Prober, beside_listing
from mpx.transfer.background import backgrounds_of
from mpx.transfer.both_servers import BothServers
from mpx.transfer.carriers import carrier_between, carrier_for
from mpx.transfer.commit import Committer
from mpx.transfer.control_loop import ControlLoop, OnePath
from mpx.transfer.ends import Ends
from mpx.transfer.expiry import Expiry
from mpx.transfer.file_start import FileStart
from mpx.transfer.path_memory import PathMemory
from mpx.transfer.records import Records
from mpx.transfer.resume_proof import ResumeVerifier
from mpx.transfer.scan import Pair, Scan
from mpx.transfer.short_copy import streams_of_short_copy
from mpx.transfer.stream_tuning import StreamTuning
from mpx.transfer.supervisor import CopySupervisor
from mpx.transfer.timeline import Timeline
from mpx.transfer.transport import Transport
from mpx.transfer.tuner_choice import Prior, beginning, first_of_fast, tuners
from mpx.units import format_duration

if TYPE_CHECKING:  # few copies use several paths
    from mpx.multipath.paths_in_use import Multipath


class Attempt:
    """Scan, carrier, committer, prober and control loop, side by side until all is settled or one fails."""

    def __init__(
        self,
        pairs: Sequence[Pair],
        ends: Ends,
        transport: Transport,
        records: Records,
        failure: Failure,
        *,
        multipath: "Multipath | None" = None,
        on_progress: OnProgress | None = None,
    ) -> None:
        report = records.report
        known, yields = (multipath.known if multipath else None), transport.plan.yields
        short = streams_of_short_copy(transport, [info for _, _, info in pairs])
        least = first_of_fast(transport)
        self._memory = PathMemory(transport, ends, has_paths=known is not None)
        self._options = options = (
            transport.options if short else self._memory.applied(transport.options, report.note, least)
        )
        self._failure, self._records, self._multipath = failure, records, multipath
        self._is_local, self._is_by_service = ends.is_local, transport.ways == (SERVICE,)
        self._queue, self._events = FileQueue(failure.cancel), ServerEvents(reconnecting=ends.reconnecting)
        paths = multipath.paths if multipath else DefaultPath()
        # Where it yields, each path has a rate of its own.
        by_path = controls(paths.names, failure.cancel, options.rate_bps, apart=yields and known is not None)
        # Else the committer has its session before more are opened for data.
        many = any(info.kind is Kind.FOLDER for _, _, info in pairs)  # files; of few one session moves all
        many = (
            many or ends.far.capabilities.streams is StreamKind.REQUESTS
        )  # there each stream has a connection of its own
        at_once = ends.is_local or (many and not ends.is_between_servers and ends.far.find_out().admits_many)
        if at_once:
            self._events.may_spread.set()
        self._committer = committer = Committer(
            ends,
            options,
            transport.checksums,
            self._queue,
            failure,
            records,
            self._spread,
            may_connect=self._queue.wait_begun if at_once else self._events.admitted.wait,
        )
        verifier = ResumeVerifier(
            ends.open_far,
            far_is_source=ends.far_is_source,
            writes_here=ends.writes_here,
            forgot=committer.forgot,
            note=report.note,
            stop=lambda: failure.is_stopping,
            open_both=(lambda: BothServers(*ends.open_both(), ends)) if ends.is_between_servers else None,
        )
        context = CarrierContext(
            options,
            self._queue,
            by_path,
            failure,
            CopySupervisor(committer, verifier, ends, transport.checksums, report),
            StreamSettings(
                congestion=transport.plan.congestion,
                over_mptcp=transport.over_mptcp,
                source_ports=port_range(options.source_ports, "GLOBUS_TCP_SOURCE_RANGE"),
                listen_ports=port_range(options.port_range, "GLOBUS_TCP_PORT_RANGE"),
                paths=paths,
                is_short=short is not None,
                found=transport.found,
            ),
            self._events,
        )
        file_start = FileStart(
            ends,
            options,
            records,
            failure,
            prove=verifier,
            checksum_for=transport.checksums.best,
            of_passed=transport.checksums.of_passed,
        )
        self._scan = Scan(pairs, ends, options, self._queue, failure, records, committer, file_start)
        self._carrier = _carrier(ends, transport, context, records.journal.tag)
        self._prober = prober = Prober(
            "mpx-rtt",
            beside_listing(
                ends.far,
                self._scan,
                lambda: ends.open_spare(lambda: self._prober.is_over),  # a copy does not end later for it
                has_let_go=lambda: self._scan.has_let_go,
            )
            # Without streams of ours it would cost a login, and steer nothing.
            if transport.rtt and not ends.is_between_servers and ends.far.capabilities.owns_streams
            else (),
            first=transport.rtt,
            is_needed=lambda: ends.takes_turns,
        )
        self._backgrounds = backgrounds_of(self._carrier, context, ends, transport, report.note, multipath)
        prior = Prior(
            short or least,
            least,
            expected=None if short else self._memory.expected(options, report.note, least),
            window_bytes=largest_window_bytes(receives=ends.far_is_source),
        )
        chosen = tuners(options, known, prior) if ends.is_tunable and not yields else {}
        first_words = beginning(
            options,
            known,
            yields=yields,
            why_fixed=transport.why_fixed,
            is_tuned=ends.is_tunable,
        )
        if yields and options.was_given("tuner"):
            kept = "a copy that yields keeps the streams that it begins with"
            report.note(f"--tuner {options.tuner} does not search: {kept}")
        timeline = Timeline(
            report,
            self._queue,
            on_progress,
            what_is_done=self._what_is_done,
            fails=lambda: bool(self._events.reconnecting.latest[1]),
        )
        expiry = Expiry(lambda: ends.admission, report.note)

        def measured(now_s: float, samples: Mapping[str, Sample]) -> None:
            self._memory.observe(now_s, samples)
            expiry.observe(
                time.time(), now_s, timeline.lasts_s(sum(each.bytes_left for each in samples.values()))
            )

        self._loop = ControlLoop(
            self._carrier,
            self._queue,
            failure,
            tuning=StreamTuning(self._carrier, by_path, chosen, first=first_words),
            backgrounds=self._backgrounds,
            paths=multipath or OnePath(lambda: prober.measured.rtt),
            timeline=timeline,
            journal_arrivals=committer.journal_arrivals,
            on_measured=measured,
            receives=ends.far_is_source and not ends.is_local,
        )

    def run(self) -> MpxError | None:
        """Move all files; return the error of the first that could not be. Raises what ended the copy."""
        if self._multipath:
            self._multipath.start(self._events.may_spread)
        self._loop.start()
        try:
            self._run()
        finally:
            self._queue.release()
            self._memory.keep()
            for background in self._backgrounds.values():
                background.end()
            if self._multipath:
                self._multipath.close()
        self._scan.finish()
        return self._committer.first_error

    def _run(self) -> None:
        """Start everything, run the control loop, and stop everything."""
        begun: list[Carrier | Committer | Scan | Prober] = []
        try:
            for part in (self._carrier, self._committer, self._scan, self._prober):
                part.start()
                begun.append(part)
            if self._events.may_spread.is_set():
                self._carrier.spread()
            self._loop.run()
        except (MemoryError, RuntimeError) as error:  # RuntimeError: no thread is left
            self._failure.set(unexpected(error))
        except BaseException:
            self._failure.set(MpxError("stopped"))
            raise
        finally:
            if self._failure.cancel.is_set():
                self._carrier.stop()
                if self._multipath:
                    self._multipath.stop()
            self._prober.end()
            for part in begun:
                part.join()
            self._journal_the_rest()
        if self._failure.error:
            raise resumable(self._failure.error, self._options)

    def _spread(self) -> None:
        """Let those who move the files use more sessions, as the committer has its own."""
        self._events.may_spread.set()
        self._carrier.spread()

    def _what_is_done(self) -> str:
        """Return in words what is done while no data arrive."""
        if self._is_local:
            return ""
        if self._is_by_service:
            return "waiting for Globus" + (f": {why}" if (why := self._events.reconnecting.latest[1]) else "")
        retries, timeout = self._options.retries, format_duration(self._options.timeout_s)
        attempt, why = self._events.reconnecting.latest
        if attempt:
            doing = f"{why}; trying again" if why else "reconnecting"
            return f"{doing}, attempt {attempt} of {retries}"
        return f"waiting, for {timeout} at most (--timeout)"

    def _journal_the_rest(self) -> None:
        """Write to the journal what arrived last; what is missing there is verified by checksum next time."""
        try:
            self._committer.journal_arrivals()
        except MpxError as error:
            self._records.report.note(str(error))


def _carrier(ends: Ends, transport: Transport, context: CarrierContext, key: str) -> Carrier:
    """Return what moves the bytes; `key`: of the copy, as its journal has it."""
    if ends.is_between_servers:
        return carrier_between(
            ends.source.location,
            ends.destination.location,
            context,
            (ends.source_sessions, ends.sessions),
            shared=(ends.shared_of(ends.source), ends.shared_of(ends.destination)),
            is_third_party=transport.is_third_party,
            way=next(iter(transport.ways), ""),
            streams_each=transport.streams_each,
            mode_e=transport.mode_e,
            parts=transport.parts,
            key=key,
        )
    return carrier_for(
        ends.far.location,
        context,
        ends.sessions,
        upload=not ends.far_is_source,
        mode_e=transport.mode_e,
        restarts=transport.parts and ends.far.find_out().restarts,
        congestions=ends.far.find_out().congestions,
        shared=ends.shared_of(ends.far),
    )


def resumable(error: MpxError, options: CopyOptions) -> MpxError:
    """Return the error of a server that was lost for good so that it says what becomes of the copy."""
    if not error.may_retry or isinstance(error, (InboundBlocked, ThirdPartyRefused)) or not options.resume:
        return error
    kind = TransferTimeout if isinstance(error, TransferTimeout) else ConnectionLost
    return kind(f"{error}; what arrived is kept: copy the same SRC to the same DST again to continue")
