"""Downloads in MODE E: what it means that a retrieve brought more, or less, than it was to.

A server may have said a wrong size, ignore the offset or the length that it is asked for, or the file has
changed. Small files are then read to their end; nothing that begins within a file is believed of a server
that has not shown before that it begins where it is asked to.
"""

import os
from collections.abc import Callable

from mpx.endpoints.ftp.mode_e.download_session import DownloadSession
from mpx.endpoints.ftp.mode_e.retrieve import PartialRetrieve, SentTooMuch
from mpx.engine.carrier import CarrierContext
from mpx.engine.endpoint import FileInfo
from mpx.engine.range_scheduler import RangeScheduler
from mpx.engine.source_change import why_elsewhere, why_too_short
from mpx.errors import ConnectionLost, OffsetsUnproven
from mpx.files.local_error import local_error
from mpx.units import counted


class Contradictions:
    """Settles retrieves for one worker. `describe`: see Supervisor."""

    def __init__(
        self, context: CarrierContext, scheduler: RangeScheduler, describe: Callable[[str], FileInfo | None]
    ) -> None:
        self._context = context
        self._scheduler = scheduler
        self._describe = describe

    def settle(self, session: DownloadSession, retrieve: PartialRetrieve) -> bool:
        """Believe what a retrieve brought, if it is what was asked for; False if its file goes another way.

        To be called in their order. Raises OffsetsUnproven, ConnectionLost, and as Supervisor.describe.
        """
        try:
            return self._settle(session, retrieve)
        except BaseException:
            if retrieve.is_stream:
                self._context.queue.put_again(retrieve.file)
            else:
                self._scheduler.give_back(retrieve.file, retrieve.start, retrieve.end)
            retrieve.file.close()
            raise
        finally:
            retrieve.disbelieve()

    def _settle(self, session: DownloadSession, retrieve: PartialRetrieve) -> bool:
        file = retrieve.file
        if retrieve.is_stream:
            is_short = retrieve.reached_bytes < (file.listed_bytes or 0)
            return self._shorter(session, retrieve) if is_short else self._ended(session, retrieve)
        if not retrieve.is_short and not retrieve.is_long:
            if self._scheduler.asks_exactly(file) and retrieve.end == file.size_bytes:
                self._refuses_more(retrieve)
            session.believe(retrieve)
            return True
        if retrieve.start == 0 and retrieve.is_last:
            return self._stream(retrieve) if retrieve.is_long else self._shorter(session, retrieve)
        return self._elsewhere(retrieve)

    def sent_too_much(self, session: DownloadSession, error: SentTooMuch) -> bool:
        """Decide how to go on when a block lies beyond what was asked for; True if its file goes another way.

        Raises OffsetsUnproven where nothing that the session brought shows that it is an accident.
        """
        retrieve = error.retrieve
        if retrieve.start == 0 and retrieve.is_last:
            self._stream(retrieve)
            return True
        if not _is_proven(session, retrieve):
            raise OffsetsUnproven(str(error))
        return False

    def _ended(self, session: DownloadSession, retrieve: PartialRetrieve) -> bool:
        file, size_bytes = retrieve.file, retrieve.reached_bytes
        if not retrieve.is_gapless:
            raise ConnectionLost(f"parts of {file.source} are missing in what the server sent")
        session.believe(retrieve)
        try:
            os.ftruncate(retrieve.fd, size_bytes)
        except OSError as error:
            self._scheduler.give_up(file, local_error(error, file.final, writing=True))
            return False
        self._scheduler.ended(file, size_bytes)
        return True

    def _stream(self, retrieve: PartialRetrieve) -> bool:
        """Have a file that is longer than was said read to its end."""
        if retrieve.file.stream():
            self._context.queue.put_again(retrieve.file)
        return False

    def _shorter(self, session: DownloadSession, retrieve: PartialRetrieve) -> bool:
        file, size_bytes = retrieve.file, retrieve.reached_bytes
        why = why_too_short(self._describe(file.source), file, size_bytes)
        if why:
            self._scheduler.give_up(file, why)
            return False
        return self._ended(session, retrieve)

    def _elsewhere(self, retrieve: PartialRetrieve) -> bool:
        file = retrieve.file
        came = counted(retrieve.reached_bytes, "byte")
        what = f"{came} came from {retrieve.start} on and not {retrieve.size_bytes}"
        why = why_elsewhere(self._describe(file.source), file, what)
        if isinstance(why, OffsetsUnproven):
            raise why
        self._scheduler.give_up(file, why)
        return False

    def _refuses_more(self, retrieve: PartialRetrieve) -> None:
        """Note that a server only serves what is asked for to the byte, so that it cannot show anything."""
        self._scheduler.ask_exactly()
        if not self._context.supervisor.relies_on_checksums():
            raise OffsetsUnproven(
                f"{retrieve.file.source}: the server refuses a range beyond the end of the file"
            )


def _is_proven(session: DownloadSession, retrieve: PartialRetrieve) -> bool:
    """Whether the session has brought something of this kind as it was asked for."""
    return session.proven_to > 0 if retrieve.is_last else session.lengths_proven
