"""How a copy ends before its end: the first error stops every thread."""

import errno
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from mpx.errors import Interrupted, MpxError

_SHORT = (errno.ENOMEM, errno.EMFILE, errno.ENFILE)
_SHORT_WORDS = (
    "can't start new thread",
    "failed to map segment",
    "without exception set",  # SystemError: a function in C got no memory, and Python none to say so
    "without setting an exception",
)
_LOOK_S = 0.1  # at the event that nothing wakes up for


def is_shortage(error: Exception) -> bool:
    """Tell whether memory, threads or descriptors were not to be had."""
    if isinstance(error, MemoryError) or getattr(error, "errno", None) in _SHORT:
        return True
    return any(words in str(error) for words in _SHORT_WORDS)


def unexpected(error: Exception) -> MpxError:
    """Return the MpxError for an unexpected exception; a shortage of resources is reported as such."""
    if is_shortage(error):
        return MpxError(
            "not enough memory, threads or file descriptors to continue: raise the limits (ulimit -v, -u and "
            "-n), or ask for less with --streams, --files and --max-sessions"
        )
    return MpxError(f"unexpected: {type(error).__name__}: {error}")


class Settable(Protocol):
    """What can be looked at as an event can."""

    def is_set(self) -> bool:
        """Whether it is set."""
        ...


class Either:
    """Is set when one of two events is; for whoever waits as for a threading.Event."""

    def __init__(self, one: threading.Event, other: Settable) -> None:
        self._one, self._other = one, other

    def is_set(self) -> bool:
        """See Event."""
        return self._one.is_set() or self._other.is_set()

    def wait(self, timeout: float) -> bool:
        """See Event."""
        until_s = time.monotonic() + timeout
        while not self.is_set() and (left_s := until_s - time.monotonic()) > 0:
            self._one.wait(min(left_s, _LOOK_S))
        return self.is_set()


class Failure:
    """The first error that ends the whole copy, and the event that stops every thread.

    `by_user` is set from outside: the user asks the copy to end.
    """

    def __init__(self, cancel: threading.Event, by_user: threading.Event | None = None) -> None:
        self.cancel = cancel
        self.by_user = by_user or threading.Event()
        self.stopping = Either(self.cancel, self.by_user)
        self.error: MpxError | None = None  # guarded by _lock
        self._lock = threading.Lock()

    @property
    def is_stopping(self) -> bool:
        """Whether nothing is to be begun any more."""
        return self.stopping.is_set()

    def check_user(self) -> None:
        """Raise Interrupted if the user asks the copy to end."""
        if self.by_user.is_set():
            raise Interrupted

    def set(self, error: MpxError) -> None:
        """Stop everything because of `error`, unless something else did before."""
        with self._lock:
            if self.error is None and not self.cancel.is_set():
                self.error = error
        self.cancel.set()

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Around all that a thread does: its error stops everything, Interrupted only ends the thread."""
        try:
            yield
        except Interrupted:
            pass
        except MpxError as error:
            self.set(error)
        except Exception as error:
            self.set(unexpected(error))
