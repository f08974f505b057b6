"""SIGTERM while a lab is built or taken down: what was built is removed."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from mpx.errors import Terminated


class _Sigterm(BaseException):
    """SIGTERM came; not an MpxError, so that it is not taken for a failure of the lab."""


@contextmanager
def sigterm_ends() -> Iterator[None]:
    """Let SIGTERM end the block, which removes what it has built; a second one is ignored."""

    def end(_number: int, _frame: FrameType | None) -> NoReturn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise _Sigterm

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    except _Sigterm:
        raise Terminated("interrupted; the lab has been removed") from None
    finally:
        signal.signal(signal.SIGTERM, before)
