"""What a carrier is given, with nobody who listens: for tests of its parts."""

import threading

from mpx.carrier import Work
from mpx.mover import Failure, Gate, Pacer, Pool
from mpx.options import CopyOptions


def some_work(files: int | None = None) -> Work:
    failure = Failure(threading.Event())
    return Work(
        options=CopyOptions(files=files),
        pool=Pool(failure.cancel),
        pacer=Pacer(failure.cancel),
        gate=Gate(),
        failure=failure,
        whole=lambda _: None,
        given_up=lambda _, __: None,
        note=lambda _: None,
        prove=lambda _: None,
    )
