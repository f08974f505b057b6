"""`mpx.probe()`: from a target to its round-trip times (RTT)."""

import socket
import threading
import time
from collections.abc import Callable

from mpx.errors import ConnectionLost, Interrupted, MpxError, UsageError
from mpx.probing.choose import Chosen, choose
from mpx.probing.result import ProbeResult
from mpx.probing.run import Run
from mpx.probing.schedule import SAMPLINGS
from mpx.probing.target import parse_target

LONGEST_WINDOW_S = 86400.0


def probe(
    target: str,
    *,
    window_s: float = 10.0,
    sampling: str = "single",
    ipv4: bool = False,
    ipv6: bool = False,
    cancel: threading.Event | None = None,
) -> ProbeResult:
    """Measure the RTT to `target` for `window_s` seconds, in whatever way it answers.

    `target` is a URL, HOST or HOST:PORT. `sampling` is "single", ten probes a second, or "paper", ten probes
    1 ms apart each second. `ipv4` and `ipv6` allow only that family.

    Raises UsageError for a wrong request, ConnectionLost when the name is unknown, nothing answers, or
    the target is lost, and Interrupted soon after `cancel` is set. What was known until then is in
    `error.result`, None if probing had not begun.
    """
    if sampling not in SAMPLINGS:
        raise UsageError(f"--sampling is one of {', '.join(SAMPLINGS)}, not {sampling!r}")
    if not 0 < window_s <= LONGEST_WINDOW_S:
        raise UsageError(f"--window must be more than nothing and at most a day, not {window_s:g} s")
    if ipv4 and ipv6:
        raise UsageError("-4 and -6 exclude each other; give one of them")
    family = socket.AF_INET if ipv4 else socket.AF_INET6 if ipv6 else socket.AF_UNSPEC
    stop = cancel.is_set if cancel else lambda: False
    try:
        chosen = choose(*parse_target(target), family, stop)
    except Interrupted:
        raise Interrupted("interrupted before the first probe") from None
    with chosen.opened:
        return _probed(target, chosen, window_s, sampling, stop)


def _probed(
    target: str, chosen: Chosen, window_s: float, sampling: str, stop: Callable[[], bool]
) -> ProbeResult:
    run, start_unix_s = Run(chosen.way), time.time()
    failure: MpxError | None = None
    try:
        run.go(SAMPLINGS[sampling](window_s), stop)
    except Interrupted:
        failure = Interrupted("interrupted; the figures are those until then")
    except ConnectionLost as error:
        failure = error
    probes = run.probes()
    if not failure and all(probe.rtt_s is None for probe in probes):
        failure = ConnectionLost(
            f"{target} answered none of {len(probes)} probes ({chosen.way.name}: "
            f"{chosen.way.trouble or 'no answer'}), though it did just before"
        )
    result = ProbeResult(
        target=target,
        address=chosen.address,
        way=chosen.way.name,
        reason=chosen.reason,
        noise=chosen.way.noise(),
        sampling=sampling,
        window_s=window_s,
        start_unix_s=start_unix_s,
        duration_s=run.duration_s,
        probes=tuple(probes),
        error=str(failure) if failure else None,
    )
    if failure:
        failure.result = result
        raise failure from None
    return result
