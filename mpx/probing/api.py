"""`mpx.probe()`: from a target to its round-trip times (RTT)."""

import socket
import threading
import time
from collections.abc import Callable

from mpx import tcp
from mpx.errors import ConnectionLost, Interrupted, MpxError, UsageError
from mpx.probing.choose import Chosen, choose
from mpx.probing.result import ProbeResult, WayTaken
from mpx.probing.run import Run
from mpx.probing.schedule import SAMPLINGS
from mpx.probing.target import parse_target
from mpx.probing.way import Noise, Way

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
    the target is lost, TransferTimeout when it takes no more, and Interrupted soon after `cancel` is set.
    What was known until then is in `error.result`, None if probing had not begun.
    """
    if sampling not in SAMPLINGS:
        raise UsageError(f"--sampling is one of {', '.join(SAMPLINGS)}, not {sampling!r}")
    if not 0 < window_s <= LONGEST_WINDOW_S:
        raise UsageError(f"--window must be more than nothing and at most a day, not {window_s:g} s")
    if ipv4 and ipv6:
        raise UsageError("-4 and -6 exclude each other; give one of them")
    family = socket.AF_INET if ipv4 else socket.AF_INET6 if ipv6 else socket.AF_UNSPEC
    stop = cancel.is_set if cancel else lambda: False
    host, port = parse_target(target)
    try:
        addresses = [address for _, address in tcp.resolve(host, port, family, stop)]
        chosen = choose(host, addresses, stop)
    except Interrupted:
        raise Interrupted("interrupted before the first probe") from None
    with chosen.opened:
        return _probed(target, chosen, window_s, sampling, stop)


def _probed(
    target: str, chosen: Chosen, window_s: float, sampling: str, stop: Callable[[], bool]
) -> ProbeResult:
    way, run, start_unix_s = chosen.way, Run(chosen.way), time.time()
    sent_again = way.retransmissions
    failure: MpxError | None = None
    try:
        run.go(SAMPLINGS[sampling](window_s), stop)
    except Interrupted:
        failure = Interrupted("interrupted; the figures are those until then")
    except MpxError as error:
        failure = error
    probes = run.probes()
    is_any_lost = any(probe.rtt_s is None for probe in probes)
    if not failure and all(probe.rtt_s is None for probe in probes):
        failure = ConnectionLost(
            f"{target} answered none of {len(probes)} probes ({way.name}: {way.trouble or 'no answer'}), "
            "though it did just before; try again, or another port as HOST:22"
        )
    result = ProbeResult(
        target=target,
        address=chosen.address,
        way=WayTaken(
            kind=way.kind,
            name=way.name,
            reason=chosen.reason,
            noise=_noise(way),
            trouble=way.trouble if is_any_lost else "",
            sees_loss=way.sees_loss,
            retransmissions=_more(sent_again, way.retransmissions),
        ),
        sampling=sampling,
        window_s=window_s,
        start_unix_s=start_unix_s,
        duration_s=run.duration_s,
        probes=tuple(probes),
        not_sent=run.not_sent,
        exit_code=failure.exit_code if failure else 0,
        error=str(failure) if failure else None,
    )
    if failure:
        failure.result = result
        raise failure from None
    return result


def _noise(way: Way) -> Noise:
    """Return the noise of a way; that it cannot be had is no reason to lose what was measured."""
    try:
        return way.noise()
    except (OSError, MpxError) as error:
        return Noise(None, f"it could not be measured: {error}")


def _more(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else after - before
