"""The Transfer service of Globus, as threads of a copy ask it: one question at a time, and none for ever."""

import queue
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from mpx.endpoints.globus.bounded_transport import PATIENCE, bounded_transport
from mpx.endpoints.globus.credentials import TRANSFER, GlobusCredentials, find_credentials
from mpx.endpoints.globus.refusals import meaning, required_scopes
from mpx.errors import ConnectionLost, Interrupted, MpxError, TransferTimeout, UsageError
from mpx.report import OnNote, no_note

if TYPE_CHECKING:
    from globus_sdk import TransferClient

INSTALL = "globus:// needs globus-sdk; install it with mpx, in its sources: pip install '.[globus]'"
_LEAST_S = 15.0  # that a call has: the first one loads the SDK, which takes its time on a busy machine
_LOOK_S = 0.1  # at whether nobody waits for an answer any more
Answer = TypeVar("Answer")


def check_installed() -> None:
    """Raise UsageError where the SDK is not installed."""
    try:
        import globus_sdk  # noqa: F401 it is imported where it is used
    except ImportError:
        raise UsageError(INSTALL) from None


def document(answer: Any) -> Mapping[str, Any]:
    """Return what the service has answered; raises ConnectionLost for what is not an object of JSON."""
    data = getattr(answer, "data", None)
    if not isinstance(data, dict):
        raise ConnectionLost("Globus, or a proxy before it, answers with something else than JSON")
    return data


def answered(question: Callable[[], Answer], what: str) -> Answer:
    """Return what a question returns; ConnectionLost where the SDK cannot read an answer."""
    try:
        return question()
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise ConnectionLost(f"cannot {what}: Globus answers nonsense ({type(error).__name__})") from None


class GlobusService:
    """Shared by the endpoints and the carrier of a copy. For any thread."""

    def __init__(
        self, timeout_s: float, credentials: GlobusCredentials | None = None, note: OnNote = no_note
    ) -> None:
        """`credentials`: None: those of the user, found once they are needed.

        Raises UsageError where the SDK is not installed.
        """
        check_installed()
        self._timeout_s, self._note = timeout_s, note
        self._lock = threading.Lock()  # guards the next two
        self._credentials = credentials
        self._idle: list[TransferClient] = []

    @property
    def credentials(self) -> GlobusCredentials:
        """What lets us in; raises AuthenticationError, UsageError."""
        with self._lock:
            if self._credentials is None:
                self._credentials = find_credentials(note=self._note)
            return self._credentials

    def ask(
        self,
        question: Callable[["TransferClient"], Answer],
        what: str,
        kind: type[MpxError],
        stop: Callable[[], bool],
    ) -> Answer:
        """Return an answer; `what` is done, as errors name it, `kind`: of errors that are due to a file.

        Raises Interrupted soon after `stop` says so, and what an answer means that is a refusal: of the SDK's
        own errors those pass that `question` does not raise.
        """
        return self.run(lambda: self._asked(question, what, kind), what, stop)

    def run(self, call: Callable[[], Answer], what: str, stop: Callable[[], bool]) -> Answer:
        """Return what a call returns that may wait for the network; raises Interrupted when stopped.

        Raises TransferTimeout where it has not returned in several times the time that an answer may take.
        """
        found: queue.SimpleQueue[tuple[Answer | None, BaseException | None]] = queue.SimpleQueue()

        def work() -> None:
            try:
                found.put((call(), None))
            except BaseException as error:
                found.put((None, error))

        until_s = time.monotonic() + max(_LEAST_S, PATIENCE * self._timeout_s)
        threading.Thread(target=work, name="mpx-globus-question", daemon=True).start()
        while True:
            try:
                answer, error = found.get(timeout=_LOOK_S)
            except queue.Empty:
                if stop():
                    raise Interrupted from None
                if time.monotonic() > until_s:
                    text = f"Globus answers too slowly: cannot {what}; --timeout waits longer"
                    raise TransferTimeout(text) from None
                continue
            if error is not None:
                raise error
            return answer  # type: ignore[return-value]

    def _asked(
        self, question: Callable[["TransferClient"], Answer], what: str, kind: type[MpxError]
    ) -> Answer:
        from globus_sdk import GlobusAPIError, GlobusError

        while True:
            try:
                client = answered(self._client, what)
                answer = answered(partial(question, client), what)
            except GlobusAPIError as error:
                if (scopes := required_scopes(error)) and self.credentials.consents(scopes):
                    self.close()  # as the others have what was not enough
                    continue
                raise meaning(error, what, kind, self.credentials.secrets()) from None
            except GlobusError as error:
                raise meaning(error, what, kind, self.credentials.secrets()) from None
            with self._lock:
                self._idle.append(client)
            return answer

    def _client(self) -> "TransferClient":
        """Return one that nobody uses; it tries nothing twice, but for a token that has expired."""
        from globus_sdk import TransferClient
        from globus_sdk.transport import RetryCheckCollection, RetryConfig
        from globus_sdk.transport.default_retry_checks import check_expired_authorization

        with self._lock:
            if self._idle:
                return self._idle.pop()
        client = TransferClient(
            authorizer=self.credentials.authorizer(TRANSFER),
            app_name="mpx",
            transport=bounded_transport(self._timeout_s),
            retry_config=RetryConfig(max_retries=1, max_sleep=0),
        )
        client.retry_config.checks = RetryCheckCollection()
        client.retry_config.checks.register_check(check_expired_authorization)
        return client

    def close(self) -> None:
        """Close what nobody uses."""
        with self._lock:
            idle, self._idle = self._idle, []
        for client in idle:
            client.transport.close()
