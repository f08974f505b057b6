"""Every parser of foreign bytes takes its corpus, changes of that, and what is long.

`make fuzz` does the same for a minute each, led by the lines that are reached.
"""

import random
from itertools import islice

import fuzzing
import pytest
from mutations import long_pair

CHANGES = 500  # for each target, less for those that are slow
LONG, LONG_BYTES = 5, 40 * 1024
SEED = 1


@pytest.mark.parametrize("name", fuzzing.names())
def test_inputs(name: str) -> None:
    target = fuzzing.target(name)
    pool = [*target.SEEDS, *fuzzing.corpus(name)]
    count = len(pool) + CHANGES // fuzzing.weight(target)
    for data in islice(fuzzing.inputs(pool, random.Random(SEED)), count):
        fuzzing.run_one(target, data)


@pytest.mark.parametrize("name", fuzzing.names())
def test_long_inputs(name: str) -> None:
    target, chance = fuzzing.target(name), random.Random(SEED)
    for _ in range(LONG):
        fuzzing.check_long(target, *long_pair([*target.SEEDS, *fuzzing.corpus(name)], chance, LONG_BYTES))
