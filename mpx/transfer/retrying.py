"""Asking an endpoint once more, over a new connection, where the old one was lost."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from mpx.engine.endpoint import Endpoint, FileInfo
from mpx.engine.reconnecting import Reconnecting
from mpx.engine.retry import Retry, Stop, fewer
from mpx.errors import ConnectionLost, ListingBroken, MpxError, PartialFailure, TransferTimeout
from mpx.location import Location

Answer = TypeVar("Answer")
Item = TypeVar("Item")
MOST_ENDS = 2  # listings that are ended by a server with an error after the same lines, before that is it


class RetryingEndpoint:
    """An endpoint of one thread; raises ConnectionLost or TransferTimeout only after all retries.

    And Interrupted once `stop` is set.
    """

    def __init__(
        self, end: Endpoint, retries: int, stop: Stop, reconnecting: Reconnecting | None = None
    ) -> None:
        """`reconnecting` knows of each wait."""
        self._end = end
        self._retries = retries
        self._stop = stop
        self._reconnecting = reconnecting or Reconnecting()

    @property
    def location(self) -> Location:
        """See Endpoint."""
        return self._end.location

    def ask(self, question: Callable[[], Answer]) -> Answer:
        """Return the answer to a question that may be asked twice."""
        retry: Retry | None = None
        while True:
            try:
                return question()
            except (ConnectionLost, TransferTimeout) as error:
                self._end.close()  # it connects again when it is used
                retry = retry or Retry(self._retries, self._stop)
                self._wait(retry, error)

    def ask_all(
        self, question: Callable[[Sequence[Item]], Iterable[Answer]], items: Sequence[Item]
    ) -> list[Answer]:
        """Return the answers to a question about many items, which may be asked twice, in their order.

        Of fewer items at once where the connection does not last for all, as a server may end each session
        after so many commands.
        """
        retry = Retry(self._retries, self._stop)
        answers: list[Answer] = []
        done, most = 0, len(items)
        while done < len(items):
            some = items[done : done + most]
            try:
                answers += question(some)
            except (ConnectionLost, TransferTimeout) as error:
                self._end.close()
                self._wait(retry, error)
                most = fewer(len(some))
            else:
                retry.progressed()
                done += len(some)
        return answers

    def check_name(self, name: str) -> None:
        """See Endpoint."""
        self.ask(partial(self._end.check_name, name))

    def stat(self, name: str, *, follow: bool = True) -> FileInfo | None:
        """See Endpoint."""
        return self.ask(partial(self._end.stat, name, follow=follow))

    def stats(self, names: Sequence[str], *, follow: bool = True) -> list[FileInfo | MpxError | None]:
        """See Endpoint."""
        return self.ask_all(partial(self._end.stats, follow=follow), names)

    def entries(self, name: str) -> Iterator[tuple[str, FileInfo | MpxError]]:
        """See Endpoint. A listing that broke is read again and goes on where it was, if it is the same.

        One that the server ends with the same error each time, after the same lines, is a PartialFailure.
        """
        retry = Retry(self._retries, self._stop)
        count, seen = 0, hashlib.sha256()
        ends = 0  # of this kind, after these lines
        while True:
            skipped, again = 0, hashlib.sha256()
            try:
                for entry in self._end.entries(name):
                    line = f"{entry[0]}\0".encode("utf-8", "surrogateescape")
                    if skipped < count:
                        skipped += 1
                        again.update(line)
                        continue
                    self._check_same(name, seen.digest(), again.digest())
                    count, skipped = count + 1, skipped + 1
                    seen.update(line)
                    again.update(line)
                    retry.progressed()
                    ends = 0
                    yield entry
                self._check_same(name, seen.digest(), again.digest())
            except (ConnectionLost, TransferTimeout) as error:
                self._end.close()
                ends += isinstance(error, ListingBroken)
                if ends > min(self._retries, MOST_ENDS):
                    raise PartialFailure(f"{error}; what it listed until then is copied") from None
                self._wait(retry, error)
            else:
                return

    def _wait(self, retry: Retry, error: MpxError) -> None:
        self._reconnecting.wait(f"asking {self.location}", retry, error)

    @staticmethod
    def _check_same(name: str, before: bytes, now: bytes) -> None:
        if before != now:
            raise ConnectionLost(
                f"the connection was lost while {name} was listed, and the folder has changed since"
            )
