"""Which tuner a copy gets, and where that starts."""

from mpx.apt_auto import AutoTuner
from mpx.apt_gss import PaperGss
from mpx.options import CopyOptions
from mpx.tuner import Sample
from mpx.tuners import first_streams, tuner_for

FAR = {"path": Sample(0, 0, 10**12, rtt_s=0.1)}


def start(options: CopyOptions) -> int:
    tuner = tuner_for(options)
    assert tuner is not None
    return tuner.observe(0.0, FAR)[0].streams


def test_a_fixed_number_has_none() -> None:
    assert tuner_for(CopyOptions(streams=4)) is None


def test_each_by_its_name() -> None:
    assert isinstance(tuner_for(CopyOptions()), AutoTuner)
    assert isinstance(tuner_for(CopyOptions(tuner="paper")), PaperGss)


def test_a_number_to_start_with_counts_from_python_too_and_as_the_usual_one() -> None:
    assert start(CopyOptions()) == 10  # 100 ms there and back
    assert start(CopyOptions(initial_streams=4)) == 4
    assert start(CopyOptions(tuner="paper")) == 4
    assert start(CopyOptions(tuner="paper", initial_streams=6)) == 6


def test_no_start_above_the_most() -> None:
    for tuner in ("auto", "paper"):
        options = CopyOptions(tuner=tuner, max_streams=3)
        assert (first_streams(options), start(options)) == (3, 3)
