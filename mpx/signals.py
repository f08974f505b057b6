"""Signals that end a command: SIGINT, SIGTERM and SIGHUP, each with exit code 128 and its number.

From the first line of `mpx` on they end it at once (`end_at_once`). A copy and a probe then stop in order and
keep what they have (`Signals`), within a bounded time. This module is imported before all that takes time, so
it imports little.
"""

import _thread
import os
import select
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType

from mpx.errors import HungUp, Interrupted, MpxError, Terminated

GRACE_S = 1.0  # for what stops in order, after the first signal
LAST_WORDS_S = 0.5  # more, for what is written where that did not suffice
_KINDS: dict[int, type[Interrupted]] = {signal.SIGTERM: Terminated, signal.SIGHUP: HungUp}


def end_at_once() -> None:
    """Have each of the signals end this process with one line, whatever it is doing.

    No exception is raised: in the middle of an import it could be lost, or shown with a traceback.
    """
    for number in _taken():
        signal.signal(number, _at_once)


def raise_again() -> None:
    """Undo `end_at_once`, for a command that cleans up: SIGINT raises KeyboardInterrupt again."""
    for number in _taken():
        if signal.getsignal(number) is _at_once:
            usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, usual)


def _taken() -> tuple[signal.Signals, ...]:
    """Return the signals that count: one that nohup has had ignored is none of them."""
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return (signal.SIGINT, signal.SIGTERM) if ignored else (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _at_once(number: int, _: FrameType | None) -> None:
    _leave(number, f"interrupted by {signal.Signals(number).name}")


def _leave(number: int, line: str) -> None:
    """End the process, with a line if standard error takes one now."""
    is_terminal = os.isatty(2)
    text = f"mpx: {line}\n" if line else ""
    if is_terminal:
        text = f"\r\x1b[K{text}"  # over the line that progress may stand in
    writable = select.poll()
    writable.register(2, select.POLLOUT)
    try:
        if text and writable.poll(0):
            os.write(2, text.encode())
    except OSError:
        pass  # nobody reads it
    os._exit(128 + number)


class Signals:
    """Turns the first signal into the cancel event of a copy or a probe; a second one ends at once.

    What has not ended `grace_s` after the first is ended (None: it may take its time), as a thread may be
    blocked in a system call that nothing wakes. `last_words` is called before, if set, and has LAST_WORDS_S.

    Nobody but the user is to send signals: numpy's OpenBLAS starts a thread for each core as it is imported,
    and where it may not it raises SIGINT. We need none of these threads.
    """

    def __init__(self, grace_s: float | None = GRACE_S) -> None:
        self._grace_s = grace_s
        self.cancel = threading.Event()
        self.received: int | None = None
        self.last_words: Callable[[], None] | None = None
        self._before: dict[signal.Signals, signal._HANDLER] = {}
        self._is_left = False  # whoever called tells the rest

    def __enter__(self) -> "Signals":
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        self._before = {number: signal.signal(number, self._received) for number in _taken()}
        return self

    def __exit__(self, *_: object) -> None:
        self._is_left = True
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def _received(self, number: int, _: FrameType | None) -> None:
        if self.received is not None:
            _leave(number, f"ended at once by a second signal, {signal.Signals(number).name}")
        self.received = number
        try:  # the event has a lock, which the code that was interrupted may hold
            _thread.start_new_thread(self._end, (number,))
        except RuntimeError:  # no thread is left
            _leave(number, str(Interrupted()))

    def _end(self, number: int) -> None:
        """Cancel; end the process where that does not."""
        self.cancel.set()
        if self._grace_s is None:
            return
        time.sleep(self._grace_s)
        if self.last_words is not None and not self._is_left:
            speaking = threading.Thread(target=self.last_words, name="mpx-last-words", daemon=True)
            speaking.start()
            speaking.join(LAST_WORDS_S)
        _leave(number, "" if self._is_left else str(Interrupted()))

    def translate(self, error: MpxError) -> MpxError:
        """Return `error`, as the kind that belongs to the signal if it was one that interrupted."""
        kind = _KINDS.get(self.received or 0)
        if kind is None or not isinstance(error, Interrupted):
            return error
        translated = kind(str(error))
        translated.report, translated.result = error.report, error.result
        return translated
