"""What ends a copy: the first error, which stops everything."""

import errno
import threading

import pytest

from mpx.engine.stop import Failure, unexpected
from mpx.errors import Interrupted, MpxError, NoSpace, SourceError

SHORTAGE = str(unexpected(MemoryError()))


def test_the_first_failure_counts() -> None:
    failure = Failure(threading.Event())
    failure.set(SourceError("first"))
    failure.set(MpxError("second"))
    assert failure.cancel.is_set()
    assert str(failure.error) == "first"
    stopped = Failure(threading.Event())
    stopped.cancel.set()
    stopped.set(MpxError("what stopping brings about"))
    assert stopped.error is None


@pytest.mark.parametrize(
    ("raised", "kept"),
    [
        (NoSpace("full"), "full"),
        (ValueError("odd"), "unexpected: ValueError: odd"),
        (RuntimeError("can't start new thread"), SHORTAGE),
        (MemoryError(), SHORTAGE),
        (SystemError("error return without exception set"), SHORTAGE),  # as Python may have it then
        (SystemError("<built-in method x> returned NULL without setting an exception"), SHORTAGE),
        (SystemError("something else"), "unexpected: SystemError: something else"),
        (OSError(errno.ENOMEM, "no"), SHORTAGE),
        (Interrupted("this thread only"), None),
        (None, None),
    ],
)
def test_what_a_thread_raises_ends_the_copy(raised: Exception | None, kept: str | None) -> None:
    failure = Failure(threading.Event())
    with failure.guard():
        if raised is not None:
            raise raised
    assert failure.cancel.is_set() == (kept is not None)
    assert (failure.error and str(failure.error)) == kept
    assert SHORTAGE.startswith("not enough memory")
