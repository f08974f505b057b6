"""The pacer: no rate is exceeded, and none is missed."""

import threading
import time

import pytest

from mpx.pacer import CREDIT_S, Pacer


@pytest.mark.parametrize("threads", [1, 8])
def test_the_pacer_is_exact_over_all_streams(threads: int) -> None:
    """Never faster; and not slower either, unless the machine is: then it is measured once more."""
    rate_bps, size = 80e6, 10_000_000
    figures = []
    for _ in range(4):
        pacer = Pacer(threading.Event(), rate_bps)
        piece = pacer.piece(256 * 1024)
        assert piece == 200_000  # 20 ms

        def stream(pacer: Pacer = pacer, piece: int = piece) -> None:
            for _ in range(size // threads // piece):
                pacer.wait(piece)

        streams = [threading.Thread(target=stream) for _ in range(threads)]
        began_s = time.monotonic()
        for thread in streams:
            thread.start()
        for thread in streams:
            thread.join()
        pieces = threads * (size // threads // piece)
        took_s, wanted_s = time.monotonic() - began_s, (pieces - 1) * piece * 8 / rate_bps
        assert took_s >= wanted_s - CREDIT_S
        figures.append(took_s / wanted_s)
        if abs(figures[-1] - 1) <= 0.03 + CREDIT_S / wanted_s:
            return
    raise AssertionError(f"the rate is not kept: {figures}")


def test_time_lost_is_made_up_for_only_a_little() -> None:
    pacer = Pacer(threading.Event(), 8e6)
    pacer.wait(1000)
    time.sleep(3 * CREDIT_S)  # a machine that stalls
    began_s = time.monotonic()
    for _ in range(200):
        pacer.wait(1000)  # 200 kB at 1 MB/s
    assert time.monotonic() - began_s >= 0.2 - CREDIT_S - 0.002


def test_an_unlimited_pacer_and_a_stopped_one_do_not_wait() -> None:
    Pacer(threading.Event()).wait(1 << 60)
    cancel = threading.Event()
    cancel.set()
    Pacer(cancel, 1.0).wait(1 << 20)
    assert Pacer(cancel).piece(5) == 5
    assert Pacer(cancel, 1.0).piece(1 << 20) == 1460
