"""Readings once a second of links that were not learnt from."""

from dataclasses import replace

import numpy as np
from mpx_train.learn import Kind, Settings
from mpx_train.readings import read_unseen
from ops_examples import simulated

from mpx.recognition.mix import GROUP_OF, MIXES, UNKNOWN
from mpx.recognition.observation import PASSIVE

KIND = Kind(PASSIVE, 5.0)
QUICK = Settings(trees=20, copies=2, folds=4)


def test_each_series_is_read_once_a_second_by_what_it_did_not_teach() -> None:
    examples = simulated(8, 10.0)
    found = list(read_unseen(examples, KIND, 1, QUICK))
    key = [(each.link, each.mix) for each in examples]
    assert sorted((each.link, each.mix) for each in found) == sorted(key)
    assert {len(each.readings) for each in found} == {6}
    assert all(each.is_clean for each in found)
    right = [GROUP_OF[each.mix] == reading.group for each in found for reading in each.readings]
    assert np.mean(right) > 0.7
    names = {reading.name for each in found for reading in each.readings}
    assert set(MIXES) < names <= {*MIXES, UNKNOWN}


def test_names_given_by_lot_are_not_read() -> None:
    """A series that had taught what reads it would be known by heart."""
    examples = simulated(8, 10.0)
    lots = np.random.default_rng(1).choice(MIXES, len(examples))
    given = [replace(each, mix=str(mix)) for each, mix in zip(examples, lots, strict=True)]
    found = list(read_unseen(given, KIND, 1, QUICK))
    right = [each.mix == MIXES[int(np.argmax(reading.shares))] for each in found for reading in each.readings]
    assert np.mean(right) < 0.35
