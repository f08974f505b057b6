"""Downloads in MODE E: what it means that a retrieve brought more, or less, than it was to.

A server may have said a wrong size, ignore the offset or the length that it is asked for, or the file has
changed. Small files are then read to their end; nothing that begins within a file is believed of a server
that has not shown before that it begins where it is asked to.
"""

import os

from mpx.endpoints.ftp.mode_e.download_session import DownloadSession
from mpx.endpoints.ftp.mode_e.retrieve import PartialRetrieve, SentTooMuch
from mpx.engine.carrier import CarrierContext
from mpx.engine.range_scheduler import RangeScheduler
from mpx.engine.source_change import why_elsewhere, why_too_short
from mpx.errors import ConnectionLost, OffsetsUnproven
from mpx.files.local_error import local_error
from mpx.units import counted


class Contradictions:
    """Settles retrieves for one lane."""

    def __init__(self, work: CarrierContext, shelf: RangeScheduler) -> None:
        self._work = work
        self._shelf = shelf

    def settle(self, session: DownloadSession, pull: PartialRetrieve) -> bool:
        """Believe what a retrieve brought, if it is what was asked for; False if its file goes another way.

        To be called in their order. Raises OffsetsUnproven, ConnectionLost, and as CarrierContext.describe.
        """
        try:
            return self._settle(session, pull)
        except BaseException:
            if pull.is_stream:
                self._work.pool.put_again(pull.move)
            else:
                self._shelf.give_back(pull.move, pull.start, pull.end)
            pull.move.close()
            raise
        finally:
            pull.disbelieve()

    def _settle(self, session: DownloadSession, pull: PartialRetrieve) -> bool:
        move = pull.move
        if pull.is_stream:
            is_short = pull.reached_bytes < (move.listed_bytes or 0)
            return self._shorter(session, pull) if is_short else self._ended(session, pull)
        if not pull.is_short and not pull.is_long:
            if self._shelf.asks_exactly(move) and pull.end == move.size_bytes:
                self._refuses_more(pull)
            session.believe(pull)
            return True
        if pull.start == 0 and pull.is_last:
            return self._stream(pull) if pull.is_long else self._shorter(session, pull)
        return self._elsewhere(pull)

    def sent_too_much(self, session: DownloadSession, error: SentTooMuch) -> bool:
        """Decide how to go on when a block lies beyond what was asked for; True if its file goes another way.

        Raises OffsetsUnproven where nothing that the session brought shows that it is an accident.
        """
        pull = error.pull
        if pull.start == 0 and pull.is_last:
            self._stream(pull)
            return True
        if not _is_proven(session, pull):
            raise OffsetsUnproven(str(error))
        return False

    def _ended(self, session: DownloadSession, pull: PartialRetrieve) -> bool:
        move, size_bytes = pull.move, pull.reached_bytes
        if not pull.is_gapless:
            raise ConnectionLost(f"parts of {move.source} are missing in what the server sent")
        session.believe(pull)
        try:
            os.ftruncate(pull.fd, size_bytes)
        except OSError as error:
            self._shelf.give_up(move, local_error(error, move.final, writing=True))
            return False
        self._shelf.ended(move, size_bytes)
        return True

    def _stream(self, pull: PartialRetrieve) -> bool:
        """Have a file that is longer than was said read to its end."""
        if pull.move.stream():
            self._work.pool.put_again(pull.move)
        return False

    def _shorter(self, session: DownloadSession, pull: PartialRetrieve) -> bool:
        move, size_bytes = pull.move, pull.reached_bytes
        why = why_too_short(self._work.describe(move.source), move, size_bytes)
        if why:
            self._shelf.give_up(move, why)
            return False
        return self._ended(session, pull)

    def _elsewhere(self, pull: PartialRetrieve) -> bool:
        move = pull.move
        what = f"{counted(pull.reached_bytes, 'byte')} came from {pull.start} on and not {pull.size_bytes}"
        why = why_elsewhere(self._work.describe(move.source), move, what)
        if isinstance(why, OffsetsUnproven):
            raise why
        self._shelf.give_up(move, why)
        return False

    def _refuses_more(self, pull: PartialRetrieve) -> None:
        """Note that a server only serves what is asked for to the byte, so that it cannot show anything."""
        self._shelf.is_exact = True
        if not self._work.verifies():
            raise OffsetsUnproven(f"{pull.move.source}: the server refuses to be asked beyond its end")


def _is_proven(session: DownloadSession, pull: PartialRetrieve) -> bool:
    """Whether the session has brought something of this kind as it was asked for."""
    return session.proven_to > 0 if pull.is_last else session.lengths_proven
