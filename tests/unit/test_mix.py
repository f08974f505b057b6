"""The names of the mixes, their groups, and what is said of one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.mix import ANY_BBR, CUBIC_ONLY, GROUP_OF, GROUPS, MIXES, NOBODY, groups_of, likeliest


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
    assert sum(groups_of(probabilities).values()) == pytest.approx(1)
    assert likeliest(probabilities).probability == max(probabilities)
