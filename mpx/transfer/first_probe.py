"""OPS' own loop: probe each path before data move, classify its background, and begin as that asks for.

After Anvari and Lu, Computers 10(6):76, 2021, section 4. The copy goes on watching (background.py).
"""

import threading
import time
from collections.abc import Mapping
from dataclasses import replace

from mpx import ops_classifier
from mpx.choices import ACTIVELY, AUTO, CUBIC, FAIR, SCAVENGER, TRANSPORT
from mpx.engine.path_set import DEFAULT_PATH
from mpx.errors import UsageError
from mpx.options import CopyOptions
from mpx.recognition.accumulated import KEPT_S, accumulated
from mpx.recognition.mix import UNKNOWN, Mix
from mpx.recognition.observation import ACTIVE_SHORT
from mpx.recognition.switching import requirement
from mpx.recognition.watch import RttWatch
from mpx.report import OnNote, Severity
from mpx.transfer.ends import Ends
from mpx.transfer.transport import Transport, why_not_congestion
from mpx.transfer.watched_path import WatchedPath
from mpx.units import counted

BEGINS_S = 6.0  # a method of probing has been chosen by then, or there is none
LOOKS_S = 0.1
SPARE_S = 5.0  # probes are kept for so much longer than they are read: the last ones may be lost
LIKELY = 0.5  # as in OPS the likelier one counts: a choice costs no switch, and is none for good


def probe_first(
    transport: Transport,
    ends: Ends,
    paths: Mapping[str, WatchedPath],
    note: OnNote,
    cancel: threading.Event,
) -> Transport:
    """Probe all paths at once; return the transport with what each is to begin with, and note what was found.

    A path that cannot be probed, or of whose background nothing is likely, begins as without this. Bursts
    that were asked for and cannot show anything are left out, which is noted. `cancel` ends it soon.
    """
    if transport.options.probe_mode == ACTIVELY:
        if why := _why_no_bursts(transport, ends, paths):
            note(f"no bursts before the copy: {why}", Severity.NOTICE)
        else:
            transport, is_read = _with_bursts(transport, ends, paths[DEFAULT_PATH], note, cancel)
            if is_read:
                return transport
    if not transport.plan.selects:
        note(f"nothing was probed first: {why_no_choice(transport.options)}", Severity.NOTICE)
        return transport
    seconds = transport.options.probe_first_s or 0.0
    keep_s = KEPT_S + SPARE_S
    watches = {path: watch for path, place in paths.items() if (watch := place.watch(keep_s=keep_s))}
    try:
        model = ops_classifier.load(classifier=transport.options.classifier)
        if seconds < (least_s := model.window_s()):
            more = f"--probe-first {least_s:g}s"
            raise UsageError(f"{model.name} reads {least_s:g} s of probes at least; give {more}")
        for watch in watches.values():
            watch.begin()
        _wait(list(watches.values()), seconds, cancel)
        if cancel.is_set():
            return transport
        by_path = {
            path: congestion
            for path, watch in watches.items()
            if (congestion := _found(paths[path], model, watch, note))
        }
    except UsageError as error:
        note(f"nothing was recognised before the copy: {error}", Severity.NOTICE)
        return transport
    finally:
        for watch in watches.values():
            watch.end()
    return replace(transport, found=by_path)


def why_no_choice(options: CopyOptions) -> str:
    """Return what leaves no congestion control to choose."""
    if options.transport == TRANSPORT:
        return "the background is not read over Multipath TCP"
    if options.congestion != AUTO:
        return f"--congestion {options.congestion} leaves no congestion control to choose"
    if options.policy != FAIR:
        return f"--policy {options.policy} leaves no congestion control to choose"
    return "there is no congestion control to choose here"


def _why_no_bursts(transport: Transport, ends: Ends, paths: Mapping[str, WatchedPath]) -> str:
    """Return why bursts would decide nothing, or may not be sent; empty where they may."""
    options = transport.options
    if ends.far_is_source:
        return "they go to the server, and the data of a download come from there"
    if DEFAULT_PATH not in paths:
        return "they would take the path that the network chooses"
    if options.policy == SCAVENGER or options.rate_bps is not None:
        limit = "--rate" if options.rate_bps is not None else f"--policy {SCAVENGER}"
        return f"they would send more than {limit} permits"
    if not transport.plan.selects and options.streams is not None:
        return "neither a congestion control nor a number of streams is to be chosen"
    try:
        ops_classifier.load(classifier=options.classifier).window_s(ACTIVE_SHORT)
    except UsageError as error:
        return str(error)
    return ""


def _with_bursts(
    transport: Transport, ends: Ends, place: WatchedPath, note: OnNote, cancel: threading.Event
) -> tuple[Transport, bool]:
    """Probe with bursts; return what to begin with by them, and whether the background was read."""
    from mpx.transfer.burst_probe import probe_with_bursts

    result = probe_with_bursts(transport.options, ends.far.location, note, cancel)
    if result is None:
        return transport, False
    # Where no queue was seen windows may have limited the bursts, and the path may carry more.
    if result.bottleneck is not None and result.bottleneck.is_full and transport.bandwidth_bps is None:
        transport = replace(transport, bandwidth_bps=result.bottleneck.rate_bps)
    if result.background.mix is None:
        note(f"bursts showed nothing of the background: {result.background.trouble}")
        return transport, False
    if transport.plan.selects:
        how = f"{counted(len(result.probes), 'probe')} and bursts"
        found = {DEFAULT_PATH: _begins(place, result.background.mix, how, note)}
        transport = replace(transport, found=found)
    return transport, True


def _wait(watches: list[RttWatch], seconds: float, cancel: threading.Event) -> None:
    """Wait until all have probed for so long, or some cannot."""
    began_s = time.monotonic()
    first_s: dict[RttWatch, float] = {}  # when its first probe left, which it may have forgotten since

    def is_done(watch: RttWatch) -> bool:
        series = watch.series(began_s)
        if not series:
            first_s.pop(watch, None)
            return bool(watch.trouble)
        since_s = first_s.setdefault(watch, series[0].t_s)
        return bool(watch.trouble) or series[-1].t_s - since_s >= seconds

    while time.monotonic() < began_s + seconds + BEGINS_S and not all(map(is_done, watches)):
        if cancel.wait(LOOKS_S):  # probes come ten a second, and nobody tells of each
            return


def _found(place: WatchedPath, model: ops_classifier.Classifier, watch: RttWatch, note: OnNote) -> str | None:
    """Classify what was probed on a path, and note it; return what it is to begin with, None: as usual."""
    series = watch.series(0.0)
    if not series:
        say = place.noted(note)
        say(f"nothing was recognised before the copy: {watch.trouble or 'no probe was answered'}")
        return None
    how = f"{counted(len(series), 'probe')}, {model.name}"
    return _begins(place, accumulated(model, series, watch.base_s).mix, how, note)


def _begins(place: WatchedPath, mix: Mix, how: str, note: OnNote) -> str:
    """Return what a path with that background begins with, and note it."""
    say, transport = place.noted(note), place.transport
    why_not = why_not_congestion(transport.options, place.ends, transport.rtt) or str
    required = requirement(transport.options.policy, mix, why_not)
    first = transport.begins_with(place.path) or CUBIC
    chosen = first if required.probability < LIKELY else required.congestion or first
    groups = ", ".join(f"{group} {share:.0%}" for group, share in mix.groups.items())
    found = f"probably {mix.name} ({groups}; {how})"
    if mix.name == UNKNOWN:
        found = f"unknown, unlike all that the classifier has learnt (nearest: {groups}; {how})"
    say(f"before the copy the background was {found}: it begins with {chosen}")
    return chosen
