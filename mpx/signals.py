"""Signals that end a command: SIGINT, SIGTERM and SIGHUP, each with exit code 128 and its number.

From the first line of `mpx` on they end it at once (`end_at_once`). A copy and a probe then stop in order and
keep what they have (`Signals`), within a bounded time. This module is imported before all that takes time, so
it imports little.

A thread acts on them: Python's own handlers wait until the main thread runs again, which may be in a system
call that only the end of the process ends, as with a file system over the network that does not answer.
"""

import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import FrameType

from mpx.errors import HungUp, Interrupted, MpxError, Terminated

GRACE_S = 1.0  # for what stops in order, after the first signal
LAST_WORDS_S = 0.5  # more, for what is written where that did not suffice
SAME_S = 0.1  # within which two of a kind are one: timeout(1) sends to the command and to its process group
_KINDS: dict[int, type[Interrupted]] = {signal.SIGTERM: Terminated, signal.SIGHUP: HungUp}


class _Listener:
    """The thread that hears of signals from the C handler of Python, through a pipe, and calls `react`."""

    def __init__(self) -> None:
        self.react: Callable[[int], None] = _at_once
        self.interrupt_was_ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        self._thread = threading.Thread(target=self._run, name="mpx-signals", daemon=True)

    def start(self) -> None:
        """Begin to react, first to what has come since this was made."""
        if self._thread.ident is None:
            self._thread.start()

    def _run(self) -> None:
        while number := os.read(self._reader, 1)[0]:
            if signal.getsignal(number) is _heard:
                self.react(number)

    def end(self) -> None:
        """React no more."""
        signal.set_wakeup_fd(-1)
        os.write(self._writer, b"\0")
        self._thread.join()
        os.close(self._reader)
        os.close(self._writer)


_listener: _Listener | None = None


def _listen() -> _Listener:
    global _listener  # noqa: PLW0603 - a process has one handler for each signal
    if _listener is None:
        _listener = _Listener()
    return _listener


def end_at_once() -> None:
    """Have each of the signals end this process with one line, whatever it is doing.

    No exception is raised: in the middle of an import it could be lost, or shown with a traceback.
    """
    listener = _listen()
    for number in _taken():
        signal.signal(number, _heard)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _taken())  # whoever started this may have blocked them
    listener.start()  # afterwards, as that takes a while


def raise_again() -> None:
    """Undo `end_at_once`, for a command that cleans up: SIGINT is KeyboardInterrupt again, or ignored."""
    global _listener  # noqa: PLW0603
    if _listener is None:
        return
    interrupt = signal.SIG_IGN if _listener.interrupt_was_ignored else signal.default_int_handler
    for number in _taken():
        signal.signal(number, interrupt if number == signal.SIGINT else signal.SIG_DFL)
    _listener.end()
    _listener = None


def _taken() -> tuple[signal.Signals, ...]:
    """Return the signals that count: one that nohup has had ignored is none of them."""
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return (signal.SIGINT, signal.SIGTERM) if ignored else (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _heard(_number: int, _frame: FrameType | None) -> None:
    """Be the handler of a signal that the listener acts on."""


def _at_once(number: int) -> None:
    _leave(number, f"interrupted by {signal.Signals(number).name}")


_leaving = threading.Lock()


def _leave(number: int, line: str) -> None:
    """End the process, with a line if standard error takes one now; who comes second says nothing."""
    if not _leaving.acquire(blocking=False):
        return
    text = f"mpx: {line}\n" if line else ""
    if os.isatty(2):
        text = f"\r\x1b[K{text}"  # over the line that progress may stand in
    writable = select.poll()
    writable.register(2, select.POLLOUT)
    try:
        if text and writable.poll(0):
            os.write(2, text.encode())
    except OSError:
        pass  # nobody reads it
    for child in _children():  # an ssh that asks for a password would not notice
        with suppress(OSError):
            os.kill(child, signal.SIGTERM)
    os._exit(128 + number)


def _children() -> Iterator[int]:
    """Yield the processes that were started by this one, as far as the kernel tells."""
    with suppress(OSError):
        for thread in os.listdir("/proc/self/task"):
            with suppress(OSError):
                listed = os.open(f"/proc/self/task/{thread}/children", os.O_RDONLY)
                yield from map(int, os.read(listed, 4096).split())


class Signals:
    """Turns the first signal into the cancel event of a copy or a probe; a second one ends at once.

    What has not ended `grace_s` after the first is ended (None: it may take its time), as a thread may be
    blocked in a system call that nothing wakes. `last_words` is called before, if set, and has LAST_WORDS_S.

    Nobody but the user is to send signals: numpy's OpenBLAS starts a thread for each core as it is imported,
    and where it may not it raises SIGINT. We need none of these threads.
    """

    def __init__(
        self,
        grace_s: float | None = GRACE_S,
        *,
        unfinished: str = str(Interrupted()),
        hung_up: Callable[[], None] | None = None,
    ) -> None:
        """`unfinished`: what is said where it has not ended by then. `hung_up`: what SIGHUP does instead."""
        self._grace_s = grace_s
        self._hung_up = hung_up
        self._unfinished = unfinished
        self.cancel = threading.Event()
        self.received: int | None = None
        self._received_s = 0.0
        self.last_words: Callable[[], None] | None = None
        self._before: dict[signal.Signals, signal._HANDLER] = {}
        self._is_left = False  # whoever called tells the rest

    def __enter__(self) -> "Signals":
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        listener = _listen()
        self._react_before, listener.react = listener.react, self._received
        self._before = {number: signal.signal(number, _heard) for number in _taken()}
        listener.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_left = True
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        _listen().react = self._react_before

    def _received(self, number: int) -> None:
        if number == signal.SIGHUP and self._hung_up:
            self._hung_up()
            return
        if self.received is not None:
            if number == self.received and time.monotonic() - self._received_s < SAME_S:
                return
            _leave(number, f"ended at once by a second signal, {signal.Signals(number).name}")
        self.received, self._received_s = number, time.monotonic()
        self.cancel.set()
        if self._grace_s is not None:
            ending = threading.Thread(target=self._end, args=(number, self._grace_s), daemon=True)
            try:
                ending.start()
            except RuntimeError:  # no thread is left; a second signal would end no sooner than this
                self._end(number, self._grace_s)

    def _end(self, number: int, grace_s: float) -> None:
        """End the process, unless it ends in time."""
        time.sleep(grace_s)
        if self.last_words is not None and not self._is_left:
            speaking = threading.Thread(target=self.last_words, name="mpx-last-words", daemon=True)
            try:
                speaking.start()
                speaking.join(LAST_WORDS_S)
            except RuntimeError:
                pass  # no thread is left, and here nothing would bound it
        _leave(number, "" if self._is_left else self._unfinished)

    def translate(self, error: MpxError) -> MpxError:
        """Return `error`, as the kind that belongs to the signal if it was one that interrupted."""
        kind = _KINDS.get(self.received or 0)
        if kind is None or not isinstance(error, Interrupted):
            return error
        translated = kind(str(error))
        translated.report, translated.result = error.report, error.result
        return translated
