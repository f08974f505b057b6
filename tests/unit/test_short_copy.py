"""Which copies are short, and how many streams those begin with."""

from types import SimpleNamespace
from typing import Any

import pytest

from mpx.engine.carrier import SHORT_BYTES, SHORT_BYTES_EACH
from mpx.engine.endpoint import FileInfo, Kind, Rtt
from mpx.options import CopyOptions
from mpx.transfer import short_copy
from mpx.transfer.compare import take_known
from mpx.transfer.short_copy import LEAST_RTT_S, streams_of_short_copy  # as it is, before tests change it


@pytest.fixture(autouse=True)
def least_rtt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short_copy, "LEAST_RTT_S", LEAST_RTT_S)


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


@pytest.mark.parametrize(
    ("known", "algorithm", "expected"),
    [
        ((10, "ab"), "sha256", "ab"),
        ((9, "ab"), "sha256", None),  # it was asked of another size
        ((10, "ab"), "adler32", None),
        (None, "sha256", None),
    ],
)
def test_a_digest_that_came_with_the_data_counts_once(
    known: tuple[int, str] | None, algorithm: str, expected: str | None
) -> None:
    file = SimpleNamespace(far_digest=known, sums=SimpleNamespace(algorithm="sha256"))
    section: Any = SimpleNamespace(file=file, is_whole=True, start=0, end=10)
    assert take_known(section, algorithm) == expected
    assert take_known(section, algorithm) is None
    file.far_digest, section.is_whole = known, False
    assert take_known(section, algorithm) is None
