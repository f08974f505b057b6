"""Asking a GridFTP or FTP server for checksums, in whichever form it answers."""

from collections.abc import Callable, Iterator, Sequence

from mpx.endpoints.ftp.checksum_forms import Form, digest_in, forms
from mpx.endpoints.ftp.refusals import is_missing, is_unsupported, says_why
from mpx.endpoints.ftp.session import ClientSession
from mpx.endpoints.ftp.wire import Reply, command
from mpx.engine.endpoint import Part
from mpx.errors import IntegrityError, Interrupted, MpxError, NoChecksum

SLOWEST_BYTES_S = 20e6  # a server that tells no progress is given so much time for a file
MOST_REFUSALS = 20  # without one answer, after which a form is not asked for any more
_OF_THE_FILE = (450, 451, 550, 553)  # others refuse the question, whatever it is of
_SHOWN = 80  # characters of a reply


class ChecksumQuestions:
    """The questions to one server, over the session that `session` returns; remembers what it refuses."""

    def __init__(
        self, session: Callable[[], ClientSession], refused: Callable[[Reply, str], MpxError]
    ) -> None:
        self._session = session
        self._refused = refused
        self._refusals: dict[Form, int] = {}
        self._answering: set[Form] = set()
        self._tells_progress: bool | None = None  # of CKSM; None: it was not asked to yet

    def ask(
        self,
        algorithm: str,
        parts: Sequence[Part],
        stop: Callable[[], bool],
        next_questions: Sequence[bytes] = (),
    ) -> list[str | Exception]:
        """Return the digest of each part, or why there is none; NoChecksum where every form was refused.

        What one form does not give is asked for in the next. `next_questions` go out behind them, and their
        answers are kept for who asks (AskedAhead). Raises Interrupted, ConnectionLost, TransferTimeout.
        """
        results: list[str | Exception] = [self._none(algorithm) for _ in parts]
        left = list(range(len(parts)))
        for form in forms(self._session().features, algorithm):
            some = [i for i in left if form.fits(parts[i])]
            if not some or self._refusals.get(form, 0) >= MOST_REFUSALS:
                continue
            answers = self._answers(form, [parts[i] for i in some], stop, next_questions)
            for i, answer in zip(some, answers, strict=True):
                results[i] = answer
                if isinstance(answer, str):
                    self._answering.add(form)
                if not isinstance(answer, NoChecksum):
                    left.remove(i)
                elif form not in self._answering:
                    self._refusals[form] = self._refusals.get(form, 0) + 1
        return results

    def _none(self, algorithm: str) -> NoChecksum:
        return NoChecksum(
            IntegrityError(f"{self._session().peer} computes no {algorithm} checksum of this file")
        )

    def _answers(
        self,
        form: Form,
        parts: Sequence[Part],
        stop: Callable[[], bool],
        next_questions: Sequence[bytes],
    ) -> Iterator[str | MpxError]:
        questions = [form.question(part) for part in parts]
        first: list[bytes] = []
        if form.verb == "HASH":
            first = [command("OPTS", "HASH", form.spelled)]
        elif form.verb == "CKSM" and self._tells_progress is None:
            first = [command("OPTS", "CKSM", "Markers=1;")]
        longest_bytes = max(part.end - part.start for part in parts)
        is_reported = form.verb == "CKSM" and form.takes_parts and self._tells_progress
        extra_s = 0.0 if is_reported else longest_bytes / SLOWEST_BYTES_S
        session = self._session()
        replies = session.replies([*first, *questions, *next_questions], extra_s, longest_bytes)
        prepared = next(replies) if first else None
        if prepared is not None and form.verb == "CKSM":
            self._tells_progress = prepared.is_ok
        is_another = prepared is not None and form.verb == "HASH" and not prepared.is_ok
        for part in parts:
            reply = next(replies)
            yield self._read(form, part, prepared if prepared is not None and is_another else reply)
            if stop():
                raise Interrupted("stopped")
        session.ahead.keep(next_questions, list(replies))

    def _read(self, form: Form, part: Part, reply: Reply) -> str | MpxError:
        if not reply.is_ok:
            refusal = self._refused(reply, part.name)
            is_of_file = reply.code in _OF_THE_FILE or is_missing(reply) or says_why(reply)
            is_of_file |= reply.code == 500 and not is_unsupported(reply)  # as a Globus server fails
            return refusal if refusal.may_retry else NoChecksum(refusal, is_of_file=is_of_file)
        digest = digest_in(reply.lines, form.algorithm, part)
        if digest is None:
            what = f"answers {form.verb} without a valid {form.algorithm} checksum: {reply.text[:_SHOWN]}"
            return NoChecksum(IntegrityError(f"{self._session().peer} {what}"))
        return digest
