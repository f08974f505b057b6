"""What the workers of an upload over HTTP do next: a part of a file that is begun, else the next file."""

from weakref import WeakKeyDictionary, WeakSet

from mpx.engine.carrier import CarrierContext
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.range_scheduler import Piece, RangeScheduler
from mpx.engine.ranges import Range

MOST_FIRST = 8  # parts of a file that were answered first: whatever replaces the file later spoils these


class UploadScheduler(RangeScheduler):
    """Hands out files; who has one stores it whole, or has all workers store its parts."""

    def __init__(self, context: CarrierContext) -> None:
        super().__init__(context)
        self.streams = 1  # that share what is to be sent; set by the carrier
        # With `_lock` held:
        self._whole_only: WeakSet[FileTransfer] = WeakSet()
        self._first: WeakKeyDictionary[FileTransfer, list[Range]] = WeakKeyDictionary()  # stored by this run
        self._looked_at: WeakSet[FileTransfer] = WeakSet()

    def take_part(self, limit: int) -> Piece | None:
        """Return the next part of at most `limit` bytes of a file that is begun; None: there is none now.

        Towards its end parts shrink, so that all streams are done with theirs at about one time: nobody takes
        over what another has begun to send.
        """
        with self._lock:
            if not self._files:
                return None
            share = self._files[0].todo_bytes // (2 * self.streams)
            return self._take_begun(max(min(limit, share), self._smallest))

    def take_next(self) -> FileTransfer | None:
        """Return the next file; None if none waits."""
        with self._lock:
            return self._open_next()

    def take_whole(self, file: FileTransfer) -> Piece:
        """Return all of a file, whatever of it has arrived."""
        file.take_all()
        self._context.supervisor.forgot(file)
        return Piece(file, 0, file.size_bytes)

    def may_divide(self, file: FileTransfer) -> bool:
        """Tell whether parts of a file may be stored: all went well with it so far."""
        with self._lock:
            return file not in self._whole_only and not (file.retried_sections or file.was_misfit)

    def stored(self, piece: Piece) -> None:
        """Note that a part is stored, as far as it is one of the first."""
        with self._lock:
            first = self._first.setdefault(piece.file, [])
            if len(first) < MOST_FIRST:
                first.append((piece.start, piece.end))

    def first_parts(self, file: FileTransfer) -> list[Range]:
        """Return the parts of a file that this run has stored first."""
        with self._lock:
            return list(self._first.get(file, ()))

    def look_at(self, file: FileTransfer) -> None:
        """Have somebody look whether all parts of a file are there, once."""
        with self._lock:
            if file in self._looked_at or file in self._whole_only:
                return
            self._looked_at.add(file)
        self._context.queue.put_again(file)

    def only_whole(self, file: FileTransfer, *, is_in_hand: bool = False) -> bool:
        """Have a file stored whole, from its first byte; False where that was decided before.

        It waits for that in the queue, unless the caller has it in hand.
        """
        with self._lock:
            if file in self._whole_only:
                return False
            self._whole_only.add(file)
            if file in self._files:
                self._files.remove(file)
        if not is_in_hand:
            self._context.queue.put_again(file)
        return True

    def put_back(self, file: FileTransfer) -> None:
        """See RangeScheduler."""
        with self._lock:
            if file.todo_bytes and file not in self._files and file not in self._whole_only:
                self._files.appendleft(file)
