"""Reads a dataset: of each run that counts, its series with their labels."""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mpx.errors import UsageError
from mpx.recognition.pulses.pulse import QueueResponse
from mpx.rtt.series import Probe
from mpx_lab.dataset.acknowledged import acknowledged
from mpx_lab.dataset.generators import BURST, COPY
from mpx_lab.dataset.store import runs_of
from mpx_lab.record_reader import Probe as Recorded
from mpx_lab.record_reader import RecordedRun
from mpx_lab.series import Sample, resample

GOODPUT_STEP_S = 0.1
PROBES_PER_S, WHOLE = 10, 0.9  # share of the due probes that must be there: a busy machine sends some late
# What reading a damaged run raises.
_DAMAGED = (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, csv.Error)


@dataclass(frozen=True)
class Example:
    """One series; times in seconds since it began, once the mix had settled."""

    run: str  # a run has several series, one after the other
    link: str
    mix: str
    part: str
    nuisance: str  # the generators as text, empty in a clean run
    rtt_s: float  # of the empty link, without software and serialisation
    base_s: float  # the minimum over all runs of this link: the best estimate of the base
    seconds: float
    rate_bps: float
    queue_bdp: float
    profile: str  # of the bursts beside the probes, empty without
    own_congestion: str  # of our own copy, empty without
    own_streams: int
    single: Sequence[Probe]  # ten a second
    paper: Sequence[Probe]  # ten each second, 1 ms apart
    goodput: Sequence[
        tuple[float, float]
    ]  # (time, bit/s) of our own data, acknowledged until then; else empty
    responses: Sequence[QueueResponse]  # responses to rate pulses of our own data; else empty


def load_dataset(folder: Path) -> list[Example]:
    """Return every series of the runs that count, by the run's name.

    Raises UsageError where the folder holds none, or one that is damaged.
    """
    found: list[Example] = []
    for run in runs_of(folder):
        try:
            found += _examples(run)
        except _DAMAGED as error:
            raise UsageError(
                f"the run in {run.folder} cannot be read ({type(error).__name__}: {error}); "
                f"remove that folder, and measure it again with: mpx lab dataset {folder}"
            ) from None
    if not found:
        raise UsageError(f"{folder} holds no run that counts; measure some with: mpx lab dataset {folder}")
    least: dict[str, float] = {}
    for each in found:
        least[each.link] = min(least.get(each.link, each.base_s), each.base_s)
    return [replace(each, base_s=least[each.link]) for each in found]


def _examples(run: RecordedRun) -> Iterator[Example]:
    parameters: dict[str, Any] = run.about["parameters"]
    link = parameters["link"]
    single, train = _network_share(run.probes("single")), _network_share(run.probes("train"))
    for number, series in enumerate(parameters["series"], 1):
        from_s, until_s = series["from_s"], series["from_s"] + series["seconds"]
        probes = _cut(single, from_s, until_s)
        _check_whole(probes, series["seconds"])
        flows = [acknowledged(run.rows(str(file.relative_to(run.folder)))) for file in own_files(run, number)]
        yield Example(
            run=run.folder.name,
            link=link["id"],
            mix=parameters["mix"],
            part=series["part"],
            nuisance=", ".join(series["nuisance"]),
            rtt_s=link["rtt_s"],
            base_s=min((probe.rtt_s for probe in single if probe.rtt_s is not None), default=link["rtt_s"]),
            seconds=series["seconds"],
            rate_bps=link["rate_bps"],
            queue_bdp=link["queue_bdp"],
            profile=series["profile"],
            own_congestion=series["own_congestion"],
            own_streams=series["own_streams"],
            single=probes,
            paper=_cut(train, from_s, until_s),
            goodput=_together(flows, from_s, until_s),
            responses=_responses(run, number, from_s, until_s),
        )


def _check_whole(probes: Sequence[Probe], seconds: float) -> None:
    """Raise ValueError where probes are missing that were neither answered nor lost."""
    due = round(seconds * PROBES_PER_S)
    if len(probes) < WHOLE * due:
        raise ValueError(f"the series of {seconds:g} s has {len(probes)} of {due} probes")


def _network_share(probes: Sequence[Recorded]) -> list[Probe]:
    """Return round-trip times less the delay that the machine itself added."""
    return [
        Probe(probe.t_s, None if probe.rtt_s is None else probe.rtt_s - (probe.noise_s or 0.0))
        for probe in probes
    ]


def _cut(probes: Sequence[Probe], from_s: float, until_s: float) -> list[Probe]:
    return [Probe(probe.t_s - from_s, probe.rtt_s) for probe in probes if from_s <= probe.t_s < until_s]


def _responses(run: RecordedRun, number: int, from_s: float, until_s: float) -> list[QueueResponse]:
    file = dips_file(run, number)
    rows = run.rows(str(file.relative_to(run.folder))) if file.exists() else []
    found = (
        QueueResponse(float(row["t_s"]) - from_s, float(row["share"]), float(row["kept"])) for row in rows
    )
    return [response for response in found if 0 <= response.t_s < until_s - from_s]


def dips_file(run: RecordedRun, number: int) -> Path:
    """Return the file of responses to the rate pulses of our own copy in a series."""
    return run.folder / "flows" / f"{COPY}-{number}.dips.csv"


def own_files(run: RecordedRun, number: int) -> list[Path]:
    """Return the files of the senders of our own data in a series: of its bursts, or of its copy."""
    flows = run.folder / "flows"
    return sorted([*flows.glob(f"{BURST}-{number}[ab].tcp.csv"), *flows.glob(f"{COPY}-{number}.tcp.csv")])


def _together(flows: Sequence[Sequence[Sample]], from_s: float, until_s: float) -> list[tuple[float, float]]:
    if not flows:
        return []
    each = [resample(flow, from_s, until_s, GOODPUT_STEP_S) for flow in flows]
    return [((i + 1) * GOODPUT_STEP_S, sum(rates)) for i, rates in enumerate(zip(*each, strict=True))]
