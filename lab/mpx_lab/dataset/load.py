"""Reads a dataset: of each run that counts, the series from the end of its warm-up on."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpx.errors import UsageError
from mpx.rtt_series import Probe
from mpx_lab.record_reader import RecordedRun
from mpx_lab.series import Sample, resample

TRAIN_S = 0.02  # probes of one train come within that time
GOODPUT_STEP_S = 0.1


@dataclass(frozen=True)
class Example:
    """One run; times in seconds since the end of its warm-up."""

    run: str
    link: str
    mix: str
    part: str
    nuisance: str  # the generators as text, empty in a clean run
    rtt_s: float  # of the empty link
    rate_bps: float
    queue_bdp: float
    active: bool  # the paper's bursts ran beside the probes
    single: Sequence[Probe]  # ten a second
    paper: Sequence[Probe]  # each second the mean of ten
    goodput: Sequence[tuple[float, float]]  # (time, bit/s) of the bursts, or of the transfer; else empty


def load_dataset(folder: Path) -> list[Example]:
    """Return every run that counts, by name. Raises UsageError where the folder holds none."""
    examples = []
    for file in sorted(folder.glob("*/run.json")):
        run = RecordedRun.open(file.parent)
        if run.valid:
            examples.append(_example(run))
    if not examples:
        raise UsageError(f"{folder} holds no run that counts; measure some with: mpx lab dataset {folder}")
    return examples


def _example(run: RecordedRun) -> Example:
    told: dict[str, Any] = run.about["parameters"]
    from_s, seconds = told["warm_up_s"], told["seconds"]

    def probes(name: str) -> list[Probe]:
        found = run.probes(name)
        return [Probe(p.t_s - from_s, p.rtt_s) for p in found if from_s <= p.t_s < from_s + seconds]

    flows = [run.goodput(name) for name in run.flows() if name.startswith("burst") or name == "transfer"]
    wan = told["wan"]
    return Example(
        run=run.folder.name,
        link=wan["id"],
        mix=told["mix"],
        part=told["part"],
        nuisance=", ".join(told["nuisance"]),
        rtt_s=wan["rtt_s"],
        rate_bps=wan["rate_bps"],
        queue_bdp=wan["queue_bdp"],
        active=bool(told["bursts"]),
        single=probes("single"),
        paper=means_of_trains(probes("train")),
        goodput=_together(flows, from_s, from_s + seconds),
    )


def means_of_trains(probes: Sequence[Probe]) -> list[Probe]:
    """Return one probe for each train: when it began, and the mean of those that came back."""
    trains: list[list[Probe]] = []
    for probe in probes:
        if not trains or probe.t_s > trains[-1][0].t_s + TRAIN_S:
            trains.append([])
        trains[-1].append(probe)
    found = []
    for train in trains:
        rtts = [probe.rtt_s for probe in train if probe.rtt_s is not None]
        found.append(Probe(train[0].t_s, sum(rtts) / len(rtts) if rtts else None))
    return found


def _together(flows: Sequence[Sequence[Sample]], from_s: float, to_s: float) -> list[tuple[float, float]]:
    if not flows:
        return []
    each = [resample(flow, from_s, to_s, GOODPUT_STEP_S) for flow in flows]
    return [(i * GOODPUT_STEP_S, sum(rates)) for i, rates in enumerate(zip(*each, strict=True))]
