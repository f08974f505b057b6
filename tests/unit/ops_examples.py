"""Examples of a dataset that no lab has measured: simulated series, as `load_dataset` would return them."""

from collections.abc import Sequence

import numpy as np
from mpx_lab.dataset.load import Example
from simulated_background import Wan, draw_wan, simulate

from mpx.mix import MIXES
from mpx.rtt_series import Probe

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
    goodput: Sequence[tuple[float, float]] = (),
) -> Example:
    """One run; the paper's samples are every tenth probe."""
    return Example(
        run=run,
        link=link,
        mix=mix,
        part=part,
        nuisance=nuisance,
        rtt_s=wan.rtt_s,
        rate_bps=wan.rate_bps,
        queue_bdp=wan.queue_bdp,
        active=part == "active",
        single=series,
        paper=series[::10],
        goodput=goodput,
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
            run=f"{number}-{load}-{mix}",
            link=f"link {number}",
            nuisance=f"short-flows(load={load})" if load else "",
            wan=wans[number],
        )
        for (number, load, mix), found in zip(plan, series, strict=True)
    ]
