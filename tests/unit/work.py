"""What a carrier is given, made up for tests that run one part of it alone."""

import threading

from mpx.engine.carrier import Work
from mpx.engine.chunk_gate import Gate
from mpx.engine.file_queue import Pool
from mpx.engine.file_transfer import Move
from mpx.engine.rate_limiter import Pacer
from mpx.engine.stop import Failure
from mpx.options import CopyOptions


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
