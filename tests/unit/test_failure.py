"""What ends a copy: the first error, which stops everything."""

import threading

from mpx.errors import MpxError, SourceError
from mpx.failure import Failure


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
