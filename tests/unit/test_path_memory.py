"""What a copy says that it begins with is what it begins with."""

from types import SimpleNamespace
from typing import Any

import pytest

from mpx.options import CopyOptions
from mpx.transfer import path_memory
from mpx.transfer.path_memory import PathMemory
from mpx.transfer.tuner_choice import Prior, tuner_for

WINDOW_BYTES = 1_000_000
RTT_S = 0.1  # so a stream carries 80 Mbit/s


@pytest.mark.parametrize(
    ("options", "bandwidth_bps", "begins"),
    [
        ({}, 800e6, 10),
        ({}, 80e6, 4),
        ({"max_streams": 2}, 80e6, 2),
        ({"max_streams": 2}, 800e6, 2),
        ({"share": 1}, 80e6, 1),
        ({"tuner": "paper"}, 800e6, 10),
        ({"tuner": "paper"}, 80e6, 1),
    ],
)
def test_a_copy_begins_with_what_it_says(
    options: dict[str, Any], bandwidth_bps: float, begins: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(path_memory, "largest_window_bytes", lambda **_: WINDOW_BYTES)
    asked = CopyOptions(**options, bandwidth_bps=bandwidth_bps, history=False)
    transport: Any = SimpleNamespace(
        options=asked,
        rtt=SimpleNamespace(asked_s=RTT_S, address=None, local_host=None),
        bandwidth_bps=bandwidth_bps,
        plan=SimpleNamespace(yields=False),
        mode_e=True,
    )
    ends: Any = SimpleNamespace(far_is_source=False)
    notes = list[str]()
    applied = PathMemory(transport, ends, has_paths=False).applied(asked, notes.append)
    tuner = tuner_for(applied, Prior())
    assert tuner is not None
    none: Any = SimpleNamespace(arrived_bytes=0, bytes_left=0, rtt_s=RTT_S)
    (first,) = tuner.observe(0.0, {"default": none})
    assert first.streams == begins
    (said,) = notes
    assert said.startswith(f"begins with {begins} stream")
