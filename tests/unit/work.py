"""What a carrier is given, made up for tests that run one part of it alone."""

import threading

from mpx.carrier import Work
from mpx.failure import Failure
from mpx.gate import Gate
from mpx.move import Move
from mpx.options import CopyOptions
from mpx.pacer import Pacer
from mpx.pool import Pool


def a_work(**options: object) -> Work:
    failure = Failure(threading.Event())
    return Work(
        options=CopyOptions(**options),
        pool=Pool(failure.cancel),
        pacer=Pacer(failure.cancel),
        gate=Gate(),
        failure=failure,
        whole=lambda _: None,
        given_up=lambda _, __: None,
        forgot=lambda _: None,
        note=lambda _: None,
        prove=lambda _: None,
    )


def a_move(size: int, *, sums: str = "none") -> Move:
    return Move("source", "final", ".part", size, 1.0, 0o644, sums=sums)
