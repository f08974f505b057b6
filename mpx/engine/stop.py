"""How a copy ends before its end: the first error stops every thread."""

import errno
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from mpx.errors import Interrupted, MpxError

_SHORT = (errno.ENOMEM, errno.EMFILE, errno.ENFILE)


def is_shortage(error: Exception) -> bool:
    """Tell whether memory, threads or descriptors were not to be had."""
    if isinstance(error, MemoryError) or getattr(error, "errno", None) in _SHORT:
        return True
    return any(words in str(error) for words in ("can't start new thread", "failed to map segment"))


def unexpected(error: Exception) -> MpxError:
    """Return the error for one that nobody expected; want of memory and the like is no fault of ours."""
    if is_shortage(error):
        return MpxError(
            "not enough memory, threads or descriptors for this: raise the limits (ulimit -v, -u and -n), "
            "or ask for less with --streams, --files and --max-sessions"
        )
    return MpxError(f"unexpected: {type(error).__name__}: {error}")


class Failure:
    """The first error that ends the whole copy, and the event that tells every thread to stop.

    `by_user` is set from outside: the user asks the copy to end.
    """

    def __init__(self, cancel: threading.Event, by_user: threading.Event | None = None) -> None:
        self.cancel = cancel
        self.by_user = by_user or threading.Event()
        self.error: MpxError | None = None  # guarded by _lock
        self._lock = threading.Lock()

    @property
    def is_stopping(self) -> bool:
        """Whether nothing is to be begun any more."""
        return self.cancel.is_set() or self.by_user.is_set()

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
