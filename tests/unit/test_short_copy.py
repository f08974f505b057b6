"""Which copies are short, and how many streams those begin with."""

from types import SimpleNamespace
from typing import Any

import pytest

from mpx.engine.carrier import SHORT_BYTES, SHORT_BYTES_EACH
from mpx.engine.endpoint import FileInfo, Kind, Rtt
from mpx.options import CopyOptions
from mpx.transfer.short_copy import LEAST_RTT_S, streams_of_short_copy


def streams(
    *sizes: int | None,
    rtt_s: float | None = 0.06,
    mode_e: bool = True,
    kind: Kind = Kind.FILE,
    **options: Any,
) -> int | None:
    rtt = None if rtt_s is None else Rtt(rtt_s, None)
    transport: Any = SimpleNamespace(options=CopyOptions(**options), rtt=rtt, mode_e=mode_e)
    return streams_of_short_copy(transport, [FileInfo(kind, size) for size in sizes])


def test_one_for_each_64_kib_and_at_most_four_for_one_of_the_share() -> None:
    assert [streams(size) for size in (1, SHORT_BYTES_EACH, SHORT_BYTES_EACH + 1)] == [1, 1, 2]
    assert streams(SHORT_BYTES) == streams(SHORT_BYTES // 2, SHORT_BYTES // 2) == 16
    assert streams(SHORT_BYTES, share=2) == 8
    assert streams(SHORT_BYTES, max_streams=5) == 5


@pytest.mark.parametrize(
    "other",
    [
        {"rtt_s": None},
        {"rtt_s": 0.9 * LEAST_RTT_S},
        {"mode_e": False},
        {"kind": Kind.FOLDER},
        {"streams": 3},
        {"initial_streams": 3},
        {"tuner": "paper"},
        {"rate_bps": 1e6},
    ],
)
def test_which_are_not_short(other: dict[str, Any]) -> None:
    assert streams(1000) == 1
    assert streams(1000, **other) is None
    assert streams(SHORT_BYTES + 1) is streams(SHORT_BYTES, 1) is streams(1000, None) is streams(0) is None
