"""The names of the mixes, their groups, and what is said of one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpx_lab.dataset import draws
from mpx_lab.dataset.recipe import PROFILES as MEASURED
from mpx_lab.traffic.spec import TcpSquare, parse

from mpx.recognition.mix import ANY_BBR, CUBIC_ONLY, GROUP_OF, GROUPS, MIXES, NOBODY, likeliest
from mpx.recognition.observation import ACTIVE, ACTIVE_SHORT, PROFILES, TRANSFERS, Own


def test_every_mix_is_in_the_group_that_decides() -> None:
    assert set(GROUP_OF) == set(MIXES) and set(GROUP_OF.values()) == set(GROUPS)
    for mix in MIXES:
        assert (GROUP_OF[mix] == ANY_BBR) == ("B" in mix)
        assert (GROUP_OF[mix] == NOBODY) == (mix == "none")


def test_what_probabilities_say() -> None:
    said = likeliest([0.05, 0.2, 0.1, 0.15, 0.4, 0.1])
    assert (said.name, said.probability) == ("BC", 0.4)
    assert said.groups == pytest.approx({NOBODY: 0.05, CUBIC_ONLY: 0.35, ANY_BBR: 0.6})


@given(st.lists(st.floats(0, 1), min_size=6, max_size=6).filter(lambda them: sum(them) > 0))
def test_groups_share_what_the_mixes_have(weights: list[float]) -> None:
    probabilities = [weight / sum(weights) for weight in weights]
    assert sum(likeliest(probabilities).groups.values()) == pytest.approx(1)
    assert likeliest(probabilities).probability == max(probabilities)


def test_the_lab_measures_the_same_mixes_and_copies() -> None:
    assert tuple(draws.MIXES) == MIXES
    for mix, streams in draws.MIXES.items():
        said = "".join({"cubic": "C", "bbr": "B"}[parse(text).congestion] for text in streams)
        assert said == mix.replace("none", "")
    kinds = [Own(name, 1, dips).kind for dips in (False, True) for name in draws.OWN_CONGESTIONS]
    assert tuple(kinds) == TRANSFERS


@pytest.mark.parametrize(("kind", "measured"), [(ACTIVE, "paper"), (ACTIVE_SHORT, "short")])
def test_the_lab_measures_the_same_bursts(kind: str, measured: str) -> None:
    """At each instant of the profile one of the generators sends, or none where it is to be quiet."""
    specs = [parse(text) for text in MEASURED[measured]]
    at_s = 0.0
    sending = []
    for duration_s in PROFILES[kind]:
        middle_s = at_s + duration_s / 2
        here = set()
        for spec in specs:
            assert isinstance(spec, TcpSquare)
            since_s = middle_s - spec.after
            if since_s >= 0 and since_s % (spec.on + spec.off) < spec.on:
                here.add(spec.congestion)
        sending.append(here)
        at_s += duration_s
    assert sending[:2] == [{"cubic"}, {"bbr"}] and sending[-1] == set()
    assert sending[2:-1] in ([], [{"cubic"}])
