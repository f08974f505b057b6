"""Everything that sends in a run of a dataset, by the names of its flows."""

from collections.abc import Iterator
from dataclasses import dataclass

from mpx_lab.dataset.recipe import Recipe

MIX, NUISANCE, BURST, COPY = "mix", "nuisance", "burst", "transfer"  # names of flows begin with it


@dataclass(frozen=True)
class Generator:
    """A generator of a run, the name of its flow, when it begins and ends; seconds of the run."""

    spec: str
    name: str
    from_s: float
    until_s: float


def generators(recipe: Recipe) -> Iterator[Generator]:
    """Yield the mix, `mix-N`, and what is beside it in series N: `nuisance-Na`, `burst-Na`, `transfer-N`."""
    for number, (from_s, spec) in enumerate(zip(recipe.begins_s, recipe.streams, strict=True), 1):
        yield Generator(spec, f"{MIX}-{number}", from_s, recipe.ends_s)
    for number, series in enumerate(recipe.series, 1):
        stretch = series.stretch
        for letter, spec in zip("ab", stretch.nuisance, strict=False):
            yield Generator(spec, f"{NUISANCE}-{number}{letter}", series.begins_s, series.until_s)
        for letter, spec in zip("ab", stretch.bursts, strict=False):
            yield Generator(spec, f"{BURST}-{number}{letter}", series.from_s, series.until_s)
        if stretch.own:
            yield Generator(stretch.own.spec, f"{COPY}-{number}", series.begins_s, series.until_s)
