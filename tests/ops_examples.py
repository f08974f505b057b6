"""Examples of a dataset that no lab has measured: simulated series, as `load_dataset` would return them."""

from collections.abc import Sequence

import numpy as np
from mpx_lab.dataset.load import Example
from simulated_background import Wan, draw_wan, simulate

from mpx.recognition.mix import MIXES
from mpx.recognition.pulses.pulse import QueueResponse
from mpx.rtt.series import Probe

PLAIN = Wan(50e6, 0.05, 1.0)


def example(
    mix: str,
    series: Sequence[Probe],
    *,
    run: str = "run",
    link: str = "link",
    part: str = "passive",
    nuisance: str = "",
    wan: Wan = PLAIN,
    profile: str = "",
    own: tuple[str, int] = ("", 0),
    goodput: Sequence[tuple[float, float]] = (),
    responses: Sequence[QueueResponse] = (),
) -> Example:
    """One run; the paper's samples are every tenth probe."""
    return Example(
        run=run,
        link=link,
        mix=mix,
        part=part,
        nuisance=nuisance,
        rtt_s=wan.rtt_s,
        base_s=wan.rtt_s,
        seconds=len(series) / 10,
        rate_bps=wan.rate_bps,
        queue_bdp=wan.queue_bdp,
        profile=profile,
        own_congestion=own[0],
        own_streams=own[1],
        single=series,
        paper=series[::10],
        goodput=goodput,
        responses=responses,
    )


def simulated(links: int, seconds: float, *, seed: int = 1, loads: Sequence[float] = (0.0,)) -> list[Example]:
    """Every mix on so many random links, with each load of short flows."""
    dice = np.random.default_rng(seed)
    wans = [draw_wan(dice) for _ in range(links)]
    plan = [(number, load, mix) for number in range(links) for load in loads for mix in MIXES]
    series = simulate([(wans[number], mix, load) for number, load, mix in plan], seconds, seed)
    return [
        example(
            mix,
            found,
            run=f"{number}-{round(load * 100)}-{mix}",
            link=f"link {number}",
            nuisance=f"short-flows(load={load})" if load else "",
            wan=wans[number],
        )
        for (number, load, mix), found in zip(plan, series, strict=True)
    ]


def with_our_copy(links: int, seconds: float, *, seed: int = 1) -> list[Example]:
    """The same beside a copy of ours, one CUBIC stream; its goodput says nothing."""
    dice = np.random.default_rng(seed)
    wans = [draw_wan(dice) for _ in range(links)]
    plan = [(number, mix) for number in range(links) for mix in MIXES]
    series = simulate([(wans[number], f"ours {mix}", 0.0) for number, mix in plan], seconds, seed)
    return [
        example(
            mix,
            found,
            run=f"copy-{number}-{mix}",
            link=f"link {number}",
            part="transfer",
            wan=wans[number],
            own=("cubic", 1),
            goodput=[(probe.t_s, 1e7) for probe in found],
        )
        for (number, mix), found in zip(plan, series, strict=True)
    ]
