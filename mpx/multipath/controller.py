"""What a copy over several paths asks of a controller, and how one refuses."""

from collections.abc import Sequence
from typing import Protocol

from mpx.engine.path_set import PathSet, Side
from mpx.errors import ControllerError

ANSWER_S = 2.0  # for a whole question and its answer


class Controller(Protocol):
    """One controller, asked from several threads (`mpx.sdn_client.ControllerClient`).

    Every question raises ControllerError where it is not answered within ANSWER_S or refused.
    """

    def place(self, number: int, ports: Sequence[int], side: Side, path: str) -> None:
        """Have streams with these TCP ports on a path of a set; they are when it returns."""
        ...

    def remove(self, number: int, ports: Sequence[int], side: Side) -> None:
        """Say that streams have ended."""
        ...

    def renew(self, number: int) -> PathSet:
        """Keep a set for one more lease; return it as it is now."""
        ...

    def feedback(self, number: int, path: str, streams: int, rate_bps: float, rtt_s: float) -> None:
        """Tell how many streams were best on a path, what it carried then, and its round-trip time."""
        ...

    def release(self, number: int) -> None:
        """Give a set back."""
        ...

    def stop(self) -> None:
        """Let all who wait for an answer go without one; nothing is asked any more but to release a set."""
        ...


class Unreachable(ControllerError):
    """Nobody answers there."""


class NoAnswer(ControllerError):
    """The answer has not come in time."""


class Distrusted(ControllerError):
    """The certificate of what answers there is not trusted."""


class Nonsense(ControllerError):
    """What answers there is not a controller, or one of another version."""


class Refusal(ControllerError):
    """The controller refuses; `status` is that of HTTP, `detail` the reason that it gives, or empty."""

    def __init__(self, text: str, status: int = 0, detail: str = "") -> None:
        super().__init__(text)
        self.status, self.detail = status, detail


class Forgotten(Refusal):
    """The controller does not know the path set any more."""
