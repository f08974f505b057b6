"""OPS' own loop: probe each path before data move, classify its background, and begin as that asks for.

After Anvari and Lu, Computers 10(6):76, 2021, section 4. The copy goes on watching (background.py).
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from mpx import ops_classifier
from mpx.choices import CUBIC
from mpx.errors import UsageError
from mpx.recognition.mix import UNKNOWN
from mpx.recognition.switching import SURE, requirement
from mpx.recognition.watch import RttWatch
from mpx.report import OnNote
from mpx.transfer.transport import Transport, why_not_congestion
from mpx.transfer.watched_path import WatchedPath

BEGINS_S = 6.0  # a method of probing has been chosen by then, or there is none
LOOKS_S = 0.1


def probe_first(
    transport: Transport, paths: Mapping[str, WatchedPath], note: OnNote, is_stopped: Callable[[], bool]
) -> Transport:
    """Probe all paths at once; return the transport with what each is to begin with, and note what was found.

    A path that cannot be probed, or of whose background nobody is sure, begins as without this.
    """
    seconds = transport.options.probe_first_s or 0.0
    if not transport.plan.selects:
        note("nothing was probed first: there is no congestion control to choose")
        return transport
    watches = {path: watch for path, place in paths.items() if (watch := place.watch())}
    try:
        model = ops_classifier.load(classifier=transport.options.classifier)
        for watch in watches.values():
            watch.begin()
        _wait(list(watches.values()), seconds, is_stopped)
        found = {
            path: congestion
            for path, watch in watches.items()
            if (congestion := _found(paths[path], model, watch, note))
        }
    except UsageError as error:
        note(f"nothing was recognised before the copy: {error}")
        return transport
    finally:
        for watch in watches.values():
            watch.end()
    return replace(transport, found=found)


def _wait(watches: list[RttWatch], seconds: float, is_stopped: Callable[[], bool]) -> None:
    """Wait until all have probed for so long, or some cannot."""
    began_s = time.monotonic()

    def is_done(watch: RttWatch) -> bool:
        series = watch.series(began_s)
        return bool(watch.trouble) or (bool(series) and series[-1].t_s - series[0].t_s >= seconds)

    while not is_stopped() and time.monotonic() < began_s + seconds + BEGINS_S:
        if all(map(is_done, watches)):
            return
        time.sleep(LOOKS_S)  # probes come ten a second, and nobody tells of each


def _found(place: WatchedPath, model: ops_classifier.Classifier, watch: RttWatch, note: OnNote) -> str | None:
    """Classify what was probed on a path, and note it; return what it is to begin with, None: as usual."""
    say, transport = place.noted(note), place.transport
    series = watch.series(0.0)
    if not series:
        say(f"nothing was recognised before the copy: {watch.trouble or 'no probe was answered'}")
        return None
    mix = model.classify(series, watch.base_s)
    why_not = why_not_congestion(place.ends, transport.rtt) or str
    required = requirement(transport.options.policy, mix, why_not)
    first = transport.begins_with(place.path) or CUBIC
    chosen = first if required.probability < SURE else required.congestion or first
    groups = ", ".join(f"{group} {share:.0%}" for group, share in mix.groups.items())
    name = mix.name if mix.name == UNKNOWN else f"probably {mix.name}"
    how = f"{len(series)} probes, {model.name}"
    say(f"before the copy the background was {name} ({groups}; {how}): it begins with {chosen}")
    return chosen
