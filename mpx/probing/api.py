"""`mpx.probe()`: from a target to its round-trip times (RTT)."""

import math
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass

from mpx import ops_classifier
from mpx.choices import ACTIVELY, CLASSIFIERS, FAIR, KNN_DTW, PASSIVELY, POLICIES, PROBE_MODES, TREES
from mpx.endpoints.ftp.login import log_in
from mpx.endpoints.ftp.session import ClientSession
from mpx.endpoints.schemes import capabilities_of
from mpx.errors import ConnectionLost, Interrupted, MpxError, UsageError
from mpx.location import Location
from mpx.net import congestion_control, tcp
from mpx.probing.background import PathBackground, background, bottleneck, unrecognised
from mpx.probing.bursts import (
    EXACT,
    PROFILE_KINDS,
    SHORT,
    SINKS,
    Burst,
    Sender,
    bursts,
    permitted_bursts,
    whole_periods_s,
)
from mpx.probing.result import ProbeResult, WayTaken
from mpx.probing.sink import Sink
from mpx.probing.target import location_of, parse_target
from mpx.recognition.classifier import Classifier
from mpx.recognition.observation import PASSIVE, TRAINS, period_s
from mpx.recognition.policy import why_not_from
from mpx.rtt.method import Method, Noise
from mpx.rtt.methods.choose import Chosen, LogIn, choose
from mpx.rtt.runner import Run
from mpx.rtt.schedule import SAMPLINGS, SINGLE_INTERVAL_S
from mpx.rtt.series import Probe
from mpx.units import counted

LONGEST_WINDOW_S = 86400.0


def probe(
    target: str,
    *,
    window_s: float = 10.0,
    sampling: str = "single",
    mode: str = PASSIVELY,
    profile: str = SHORT,
    policy: str = FAIR,
    classifier: str | None = None,
    ipv4: bool = False,
    ipv6: bool = False,
    region: str | None = None,
    endpoint_url: str | None = None,
    cancel: threading.Event | None = None,
) -> ProbeResult:
    """Measure the RTT to `target` for `window_s` seconds, and classify the background of its path.

    `target` is a URL, HOST or HOST:PORT. `sampling` is "single", ten probes a second, or "paper", ten probes
    1 ms apart each second. `mode` "active" sends bursts of data meanwhile, after a `profile` of
    PROFILE_KINDS; the window is then a whole number of its periods, rounded up. The decision is for `policy`
    of POLICIES. `classifier` of CLASSIFIERS reads the background; without one the trees, and what the paper
    samples its nearest neighbours. `ipv4` and `ipv6` allow only that family. `region` and `endpoint_url` are
    those of a bucket (s3://).

    Raises UsageError for a wrong request, ConnectionLost when the name is unknown, nothing answers, or
    the target is lost, TransferTimeout when it accepts no more, and Interrupted soon after `cancel` is set.
    The result until then is in `error.result`, None if probing had not begun.
    """
    if sampling not in SAMPLINGS:
        raise UsageError(f"--sampling is one of {', '.join(SAMPLINGS)}, not {sampling!r}")
    if not 0 < window_s <= LONGEST_WINDOW_S:
        raise UsageError(f"--window must be more than 0 and at most a day, not {window_s:g} s")
    if mode not in PROBE_MODES:
        raise UsageError(f"--mode is one of {', '.join(PROBE_MODES)}, not {mode!r}")
    if profile not in PROFILE_KINDS:
        raise UsageError(f"--profile is one of {', '.join(PROFILE_KINDS)}, not {profile!r}")
    if policy not in POLICIES:
        raise UsageError(f"--policy is one of {', '.join(POLICIES)}, not {policy!r}")
    if classifier not in (None, *CLASSIFIERS):
        raise UsageError(f"--classifier is one of {', '.join(CLASSIFIERS)}, not {classifier!r}")
    if (mode, classifier) == (ACTIVELY, KNN_DTW) or (sampling, classifier) == ("paper", TREES):
        what = "probes beside bursts" if classifier == KNN_DTW else "the paper's probes"
        raise UsageError(f"--classifier {classifier} knows nothing of {what}; leave it out")
    if mode == ACTIVELY and sampling != "single":
        raise UsageError("--mode active needs ten probes a second; leave --sampling out")
    if ipv4 and ipv6:
        raise UsageError("-4 and -6 exclude each other; give one of them")
    family = socket.AF_INET if ipv4 else socket.AF_INET6 if ipv6 else socket.AF_UNSPEC
    stop = cancel.is_set if cancel else lambda: False
    classifier = classifier or (TREES if sampling == "single" else KNN_DTW)
    asked = _Asked(target, window_s, sampling, profile if mode == ACTIVELY else "", policy, classifier)
    planned, not_permitted = permitted_bursts(asked.bursts, congestion_control.why_not_congestion)
    location = location_of(target)
    if mode == ACTIVELY and (why_no_session := capabilities_of(location).why_no_session):
        raise UsageError(
            f"--mode active sends data to what throws them away: an mpx serve (mpx://), or /dev/null of a "
            f"GridFTP or FTP server; not to {target!r}: {why_no_session}. Leave --mode out, or name such a "
            "server on the same host"
        )
    host, port = parse_target(target, region, endpoint_url)
    try:
        addresses = [address for _, address in tcp.resolve(host, port, family, stop)]
        why_not = capabilities_of(location).why_no_session
        chosen = choose(host, addresses, stop, log_in=_log_in(location), why_no_session=why_not)
        with chosen.opened:
            sender = _sender(planned, location, chosen, stop) if asked.profile else None
            return _probed(asked, chosen, sender, not_permitted, stop)
    except Interrupted as error:
        if error.result:
            raise
        raise Interrupted("interrupted before the first probe") from None


@dataclass(frozen=True, slots=True)
class _Asked:
    """The request."""

    target: str
    window_s: float
    sampling: str
    profile: str  # of the bursts, empty without
    policy: str
    classifier: str

    @property
    def kind(self) -> str:
        """The kind of observation, as the model names it."""
        if self.sampling != "single":
            return TRAINS
        return PROFILE_KINDS[self.profile] if self.profile else PASSIVE

    @property
    def whole_window_s(self) -> float:
        """The window, rounded up to whole periods of the bursts."""
        return whole_periods_s(self.kind, self.window_s) if self.profile else self.window_s

    @property
    def bursts(self) -> list[Burst]:
        """The bursts that are sent meanwhile, if any."""
        return bursts(self.kind, self.whole_window_s) if self.profile else []


def _log_in(location: Location) -> LogIn | None:
    """Return what opens the session that the echo needs, where that is inside TLS; else it needs no login."""
    if not capabilities_of(location).by_token:
        return None
    return lambda options: log_in(ClientSession(location, options))


def _sender(planned: Sequence[Burst], location: Location, chosen: Chosen, stop: Callable[[], bool]) -> Sender:
    """Return what sends the bursts; its sessions are closed with the others. Raises MpxError."""
    sinks = [chosen.opened.enter_context(closing(Sink(location, chosen.address, stop))) for _ in range(SINKS)]
    return Sender(sinks, planned, stop)


def _probed(
    asked: _Asked, chosen: Chosen, sender: Sender | None, not_permitted: str, stop: Callable[[], bool]
) -> ProbeResult:
    load = _loaded(asked.classifier)
    method, run, start_unix_s = chosen.method, Run(chosen.method), time.time()
    sent_again, whys = method.retransmissions, _whys_not(chosen.session)
    failure: MpxError | None = None
    try:
        if sender:
            sender.begin()
        run.go(SAMPLINGS[asked.sampling](asked.whole_window_s), stop)
    except Interrupted:
        failure = Interrupted("interrupted; the figures are those until then")
    except MpxError as error:
        failure = error
    finally:
        if sender:
            sender.end()
    probes = run.probes()
    is_any_lost = any(probe.rtt_s is None for probe in probes)
    if not failure and all(probe.rtt_s is None for probe in probes):
        because = f"{method.name}: {method.trouble or 'no answer'}"
        failure = ConnectionLost(
            f"{asked.target} answered none of {counted(len(probes), 'probe')} ({because}), "
            "though it did just before; try again, or name another port, as HOST:22"
        )
    result = ProbeResult(
        target=asked.target,
        address=chosen.address,
        way=WayTaken(
            kind=method.kind,
            name=method.name,
            reason=chosen.reason,
            noise=_noise(method),
            trouble=method.trouble if is_any_lost else "",
            sees_loss=method.sees_loss,
            retransmissions=_more(sent_again, method.retransmissions),
        ),
        sampling=asked.sampling,
        profile=asked.profile,
        window_s=asked.window_s,
        start_unix_s=start_unix_s,
        duration_s=run.duration_s,
        probes=tuple(probes),
        background=_background(asked, probes, sender, not_permitted, whys, load),
        goodput=tuple(sender.goodput) if sender else (),
        bottleneck=bottleneck(probes, sender.delivered, sender.retransmits) if sender else None,
        not_sent=run.not_sent,
        exit_code=failure.exit_code if failure else 0,
        error=str(failure) if failure else None,
    )
    if failure:
        failure.result = result
        raise failure from None
    return result


def _loaded(classifier: str) -> Callable[[], Classifier]:
    """Load the model before anything is measured, as on a busy host it would take too long after a signal.

    Returns a function that returns it, or raises the error of loading: probes need no model.
    """
    try:
        model = ops_classifier.load(classifier=classifier)
    except Exception as error:
        wrong = error

        def fail() -> Classifier:
            raise wrong

        return fail
    return lambda: model


def _whys_not(session: ClientSession | None) -> tuple[Callable[[str], str], Callable[[str], str]]:
    """Return functions: why streams may not start with a congestion control, nor be switched to it."""
    if session is None:
        return congestion_control.why_not_congestion, congestion_control.why_not_congestion
    route, is_locked = session.kernel.congestion, session.kernel.is_congestion_fixed
    return (
        why_not_from(route, congestion_control.why_not_congestion, is_locked=is_locked),
        why_not_from(route, congestion_control.why_not_congestion, is_locked=is_locked, are_open=True),
    )


def _background(
    asked: _Asked,
    probes: Sequence[Probe],
    sender: Sender | None,
    not_permitted: str,
    whys_not: tuple[Callable[[str], str], Callable[[str], str]],
    load: Callable[[], Classifier],
) -> PathBackground:
    why_not, why_not_open = whys_not
    if sender is None:
        return background(
            probes, asked.policy, asked.kind, load=load, why_not=why_not, why_not_open=why_not_open
        )
    if sender.trouble:
        return unrecognised(f"the bursts ended early: {sender.trouble}", asked.policy, why_not)
    if not_permitted:
        trouble = f"bursts of CUBIC and of BBR are needed: {not_permitted}"
        return unrecognised(trouble, asked.policy, why_not)
    # After an interruption the last period is not whole, and windows consist of whole ones.
    last_s = max((probe.t_s for probe in probes), default=0.0) + SINGLE_INTERVAL_S
    until_s = period_s(asked.kind) * math.floor(last_s / period_s(asked.kind) + EXACT)
    whole = [probe for probe in probes if probe.t_s < until_s]
    return background(
        whole, asked.policy, asked.kind, sender.goodput, load=load, why_not=why_not, why_not_open=why_not_open
    )


def _noise(method: Method) -> Noise:
    """Return the noise of a method, or why it could not be measured."""
    try:
        return method.noise()
    except (OSError, MpxError) as error:
        return Noise(None, f"it could not be measured: {error}")


def _more(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else after - before
