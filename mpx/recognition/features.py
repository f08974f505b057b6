"""The features of a window of round-trip times (OPS, see mix.py).

Links differ in delay, rate and queue, so hardly any feature is a time: round-trip times are relative to the
base (that of the empty path) or to the swing of the window, which generalises to other links. The shapes that
distinguish the mixes: CUBIC fills the queue along a curve and falls to 0.7 of its window; BBR probes every
eight round trips and drains the queue for 0.2 s every 10 s; two streams of a kind fall less far and less
evenly. All windows are computed at once, a row each.
"""

from collections.abc import Callable, Mapping
from itertools import pairwise

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from mpx.recognition.observation import DIPS, LEAST_SWING_S, PASSIVE, PROFILES, TRANSFERS
from mpx.recognition.own_data import own_bursts, own_data
from mpx.recognition.own_share import own_share
from mpx.recognition.windows import STEP_S, Booleans, Floats, ProbeWindows

LEAST_S = 1e-5
LIMIT = 1e6  # features are clipped to this, so that they fit 32-bit floats
CHUNKS = 5
LAGS = (1, 2, 3, 5, 10, 20)  # steps
ECHOES = (1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 30, 40, 50)
BANDS_HZ = (0.0, 0.15, 0.3, 0.5, 0.8, 1.2, 1.7, 2.3, 3.0, 3.8, 5.01)
FEWEST_STEPS = 25
Columns = dict[str, Floats]


def features(windows: ProbeWindows, kind: str) -> Floats:
    """Return a row of numbers, all of them finite, for each window; their names are `feature_names`.

    Raises ValueError for windows of fewer than 25 steps, or without what this kind of observation needs.
    """
    steps = windows.rtt_s.shape[1]
    if steps < FEWEST_STEPS:
        raise ValueError(f"a window has {steps} steps; at least {FEWEST_STEPS} are needed")
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        columns = np.stack(list(_columns(windows, kind).values()), axis=1)
    return np.clip(np.nan_to_num(columns, nan=0.0, posinf=LIMIT, neginf=-LIMIT), -LIMIT, LIMIT)


def feature_names(steps: int, kind: str) -> tuple[str, ...]:
    """Return the names of the features of a window of so many steps."""
    any_window = np.ones((1, steps))
    windows = ProbeWindows(
        any_window, any_window < 0, np.ones(1), any_window, np.ones(1), any_window, any_window
    )
    return tuple(_columns(windows, kind))


def _columns(windows: ProbeWindows, kind: str) -> Columns:
    x, base = windows.rtt_s, windows.base_s
    ordered = np.sort(x, axis=1)
    lowest, highest = ordered[:, 0], _quantile(ordered, 0.98)
    swing = np.maximum(highest - lowest, LEAST_SWING_S)
    level = (x - lowest[:, None]) / swing[:, None]  # 0: the lowest of the window, 1: nearly the highest
    found: Columns = {
        "base": np.log(base),
        "swing": np.log(LEAST_S + highest - lowest),
        "swing of base": (highest - lowest) / base,
        "swing of lowest": (highest - lowest) / lowest,
        "spread": np.log(LEAST_S + x.std(axis=1)),
        "lost": windows.lost.mean(axis=1),
        "losses": _runs(windows.lost),
    }
    relative = ordered / base[:, None] - 1
    for share in (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0):
        found[f"queue {share}"] = _quantile(relative, share)
    found |= _distribution((ordered - lowest[:, None]) / swing[:, None])
    found |= _steps(x, swing)
    found |= _echoes(level)
    found |= _spectrum(x, base, lowest, _quantile(ordered, 0.5), swing)
    found |= _teeth(x, level)
    found |= _course(level)
    if kind == PASSIVE:
        return found
    if windows.goodput_bps is None:
        raise ValueError(f"'{kind}' probing needs the goodput of our own data")
    found |= own_data(x, level, base, windows.goodput_bps)
    if kind in PROFILES:
        found |= own_bursts(x, level, base, windows.goodput_bps, PROFILES[kind])
    if kind in TRANSFERS:
        if windows.streams is None:
            raise ValueError("in a transfer the number of our streams is needed")
        found["own streams"] = np.log2(windows.streams)
        if kind in DIPS:
            if windows.shares is None or windows.kept is None:
                raise ValueError("with rate pulses their responses are needed")
            responses = (windows.shares, windows.kept)
            found |= own_share(x, base, windows.goodput_bps, windows.streams, *responses)
    return found


def _distribution(ordered: Floats) -> Columns:
    """Return the distribution of the levels."""
    found = {f"level {share}": _quantile(ordered, share) for share in (0.02, 0.1, 0.25, 0.5, 0.75, 0.9)}
    return found | {f"level {name}": value for name, value in _moments(ordered).items()}


def _steps(x: Floats, swing: Floats) -> Columns:
    """Return the changes over some lags: saw-teeth rise slowly and fall fast."""
    found: Columns = {}
    for lag in LAGS:
        step = (x[:, lag:] - x[:, :-lag]) / swing[:, None]
        ordered = np.sort(step, axis=1)
        found[f"step {lag} size"] = np.abs(step).mean(axis=1)
        found[f"step {lag} up"] = (step > 0.03).mean(axis=1)
        found[f"step {lag} down"] = (step < -0.03).mean(axis=1)
        for share in (0.02, 0.1, 0.5, 0.9, 0.98):
            found[f"step {lag} {share}"] = _quantile(ordered, share)
        found |= {f"step {lag} {name}": value for name, value in _moments(ordered).items() if name != "mean"}
        ratio = np.sort(x[:, lag:] / x[:, :-lag], axis=1)
        for share in (0.01, 0.05, 0.95, 0.99):
            found[f"ratio {lag} {share}"] = _quantile(ratio, share)
    smooth = _sliding(x, 5).mean(axis=2)
    rough = np.abs(x[:, 2:-2] - smooth)
    found["rough"] = rough.mean(axis=1) / swing
    found["rough time"] = np.log(LEAST_S + rough.mean(axis=1))
    found["rough largest"] = _quantile(np.sort(rough, axis=1), 0.95) / swing
    rising = smooth[:, 1:] > smooth[:, :-1]
    found["rising"] = rising.mean(axis=1)
    found["longest rise"] = _longest(rising) / x.shape[1]
    found["longest fall"] = _longest(~rising) / x.shape[1]
    return found


def _echoes(level: Floats) -> Columns:
    """Return the autocorrelation at some lags."""
    off = level - level.mean(axis=1, keepdims=True)
    power = (off**2).mean(axis=1) + 1e-6
    at = {
        lag: (off[:, lag:] * off[:, :-lag]).mean(axis=1) / power
        for lag in ECHOES
        if lag <= level.shape[1] // 2
    }
    every = np.stack(list(at.values()), axis=1)
    lags = np.array(list(at))
    found = {f"echo {lag}": value for lag, value in at.items()}
    fades = every < 0.3
    found["echo fades"] = np.where(fades.any(axis=1), lags[np.argmax(fades, axis=1)], 2.0 * lags[-1])
    found["echo least"] = every.min(axis=1)
    found["echo returns"] = (every - np.minimum.accumulate(every, axis=1)).max(axis=1)
    return found


def _spectrum(x: Floats, base: Floats, lowest: Floats, median: Floats, swing: Floats) -> Columns:
    """Return the spectrum: BBR probes every eight of its shortest round-trip times."""
    steps = x.shape[1]
    shown = (x - x.mean(axis=1, keepdims=True)) / swing[:, None] * np.hanning(steps)
    power = np.abs(np.fft.rfft(shown, axis=1)) ** 2
    hertz = np.fft.rfftfreq(steps, STEP_S)
    total = power.sum(axis=1) + 1e-6
    share = power / total[:, None]
    found = {
        f"band {low:g} Hz": share[:, (hertz >= low) & (hertz < high)].sum(axis=1)
        for low, high in pairwise(BANDS_HZ)
    }
    found["mean Hz"] = share @ hertz
    found["peak Hz"] = hertz[np.argmax(power, axis=1)]
    found["peak share"] = share.max(axis=1)
    found["disorder"] = -(share * np.log(share + 1e-12)).sum(axis=1)
    time_s = np.arange(steps) * STEP_S
    for name, rtt in (("base", base), ("lowest", lowest), ("median", median)):
        turns = np.exp(-2j * np.pi * time_s / (8 * rtt[:, None]))
        found[f"pulse {name}"] = np.abs((shown * turns).sum(axis=1)) ** 2 / total
    return found


def _teeth(x: Floats, level: Floats) -> Columns:
    """Return sudden drops, and short dips and peaks."""
    found: Columns = {}
    span = 5
    around = _sliding(x, span)
    before, after = around[:, :-span].max(axis=2), around[:, span:].min(axis=2)
    fall = after / before  # of the window of a stream after a loss, if the queue is not emptied
    found["fall deepest"] = fall.min(axis=1)
    for depth in (0.95, 0.9, 0.85, 0.75, 0.65):
        found[f"falls to {depth}"] = _runs(fall < depth)
    after_level = _sliding(level, span)
    drop = after_level[:, :-span].max(axis=2) - after_level[:, span:].min(axis=2)
    for depth in (0.25, 0.5, 0.75):
        found[f"drops of {depth}"] = _runs(drop > depth)
    for name, longest in (("short", 10), ("long", 20)):
        side = min(longest, (level.shape[1] - 5) // 2)
        sides = _sliding(level, side)
        middle = level[:, side:-side]
        notch = np.minimum(sides[:, : -side - 1].max(axis=2), sides[:, side + 1 :].max(axis=2)) - middle
        peak = middle - np.maximum(sides[:, : -side - 1].min(axis=2), sides[:, side + 1 :].min(axis=2))
        for what, of in (("notch", notch), ("peak", peak)):
            ordered = np.sort(of, axis=1)
            found[f"{what} {name} half"] = _quantile(ordered, 0.5)
            found[f"{what} {name} tenth"] = _quantile(ordered, 0.9)
            found[f"{what} {name} most"] = ordered[:, -1]
            found[f"{what} {name} count"] = _runs(of > 0.4)
    return found


def _course(level: Floats) -> Columns:
    """Return how long the level is in each range, and how fifths of the window differ."""
    steps = level.shape[1]
    found: Columns = {
        "high": (level > 0.9).mean(axis=1),
        "low": (level < 0.1).mean(axis=1),
        "longest high": _longest(level > 0.85) / steps,
        "longest low": _longest(level < 0.15) / steps,
    }
    for bound in (0.25, 0.5, 0.75):
        found[f"crosses {bound}"] = _runs(level > bound)
    at = np.linspace(-1, 1, steps)
    for name, curve in (("slope", at), ("bend", at**2 - (at**2).mean())):
        found[name] = (level * curve).sum(axis=1) / (curve**2).sum()
    width = steps // CHUNKS
    chunks = level[:, : width * CHUNKS].reshape(len(level), CHUNKS, width)
    numbers: Mapping[str, Callable[[Floats], Floats]] = {
        "mean": lambda of: np.asarray(of.mean(axis=2)),
        "least": lambda of: np.asarray(of.min(axis=2)),
        "most": lambda of: np.asarray(of.max(axis=2)),
        "spread": lambda of: np.asarray(of.std(axis=2)),
        "gain": lambda of: of[:, :, -1] - of[:, :, 0],
    }
    for name, number in numbers.items():
        ordered = np.sort(number(chunks), axis=1)
        found |= {f"fifths {name} {i}": ordered[:, i] for i in range(CHUNKS)}
    return found


def _quantile(ordered: Floats, share: float) -> Floats:
    """Return a quantile of rows that are sorted."""
    place = share * (ordered.shape[1] - 1)
    low = int(place)
    high = min(low + 1, ordered.shape[1] - 1)
    return np.asarray(ordered[:, low] + (place - low) * (ordered[:, high] - ordered[:, low]))


def _moments(of: Floats) -> Columns:
    mean = of.mean(axis=1, keepdims=True)
    off = of - mean
    spread = np.sqrt((off**2).mean(axis=1)) + 1e-6
    return {
        "mean": mean[:, 0],
        "spread": spread,
        "skew": (off**3).mean(axis=1) / spread**3,
        "tails": (off**4).mean(axis=1) / spread**4,
    }


def _sliding(of: Floats, steps: int) -> Floats:
    return np.asarray(sliding_window_view(of, steps, axis=1))


def _runs(is_so: Booleans) -> Floats:
    """Return how many runs of True there are."""
    return np.asarray((is_so[:, 1:] & ~is_so[:, :-1]).sum(axis=1) + is_so[:, 0], dtype=float)


def _longest(is_so: Booleans) -> Floats:
    """Return the length of the longest run of True."""
    at = np.arange(1, is_so.shape[1] + 1)
    last_not = np.maximum.accumulate(np.where(is_so, 0, at), axis=1)
    return np.asarray((at - last_not).max(axis=1), dtype=float)
