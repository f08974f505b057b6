"""Whether somebody has a fifo open for writing: its reader cannot tell nobody from one who is silent."""

import errno
import os
import threading


class FifoWriter:
    """Waits, in a thread, until a fifo is open for writing. `fd` is open for reading, and not waited for."""

    def __init__(self, fd: int) -> None:
        """Begin to wait; raises OSError where there is no descriptor or no thread for it."""
        self._came = threading.Event()
        self._error: OSError | None = None
        self._fd = os.dup(fd)
        self._waiting = threading.Thread(target=self._wait, name="mpx-fifo", daemon=True)
        try:
            self._waiting.start()
        except RuntimeError as error:
            os.close(self._fd)
            raise OSError(errno.EAGAIN, str(error)) from None

    @property
    def has_come(self) -> bool:
        """Whether anybody has opened it for writing since. Raises OSError where that cannot be known."""
        if not self._came.is_set():
            return False
        if self._error:
            raise self._error
        return True

    def end(self) -> None:
        """Wait no longer; where we may not write to the fifo the thread stays until somebody does."""
        while not self._came.is_set():
            try:
                os.close(os.open(self._name, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC))
            except OSError:
                return
            self._came.wait(0.05)  # it may not have begun to wait yet
        self._waiting.join()
        os.close(self._fd)

    @property
    def _name(self) -> str:
        return f"/proc/self/fd/{self._fd}"

    def _wait(self) -> None:
        try:
            os.close(os.open(self._name, os.O_RDONLY | os.O_CLOEXEC))  # waits for a writer
        except OSError as error:
            self._error = error
        self._came.set()
