"""What a carrier is given, made up for tests that run one part of it alone."""

import threading

from mpx.engine.carrier import CarrierContext
from mpx.engine.chunk_gate import ChunkGate
from mpx.engine.endpoint import FileInfo, Kind
from mpx.engine.file_queue import FileQueue
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.rate_limiter import RateLimiter
from mpx.engine.stop import Failure
from mpx.options import CopyOptions


def a_context(**options: object) -> CarrierContext:
    failure = Failure(threading.Event())
    return CarrierContext(
        options=CopyOptions(**options),
        queue=FileQueue(failure.cancel),
        limiter=RateLimiter(failure.cancel),
        gate=ChunkGate(),
        failure=failure,
        whole=lambda _: None,
        given_up=lambda _, __: None,
        forgot=lambda _: None,
        note=lambda _: None,
        prove=lambda _: None,
    )


def a_file(size: int, *, sums: str = "none") -> FileTransfer:
    return FileTransfer("source", "final", ".part", FileInfo(Kind.FILE, size, 1.0, 0o644), sums=sums)
