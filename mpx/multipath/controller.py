"""The contract of a controller for a copy over several paths, and its errors."""

from collections.abc import Sequence
from typing import Protocol

from mpx.engine.path_set import PathSet, Side
from mpx.errors import ControllerError

ANSWER_S = 2.0  # for a whole request and its answer


class Controller(Protocol):
    """One controller; may be called from several threads (`mpx.sdn_client.ControllerClient`).

    Every method raises ControllerError where there is no answer within ANSWER_S, or a refusal.
    """

    def place(self, number: int, ports: Sequence[int], side: Side, path: str) -> None:
        """Put streams with these TCP ports on a path of a set; they are on it when this returns."""
        ...

    def remove(self, number: int, ports: Sequence[int], side: Side) -> None:
        """Report that streams have ended."""
        ...

    def renew(self, number: int) -> PathSet:
        """Renew the lease of a set; return the set as it is now."""
        ...

    def feedback(self, number: int, path: str, streams: int, rate_bps: float, rtt_s: float) -> None:
        """Report the best number of streams on a path, its rate with them, and its round-trip time."""
        ...

    def release(self, number: int) -> None:
        """Release a set."""
        ...

    def stop(self) -> None:
        """End all requests under way; from now on only `release` sends one."""
        ...


class Unreachable(ControllerError):
    """Nobody answers there."""


class NoAnswer(ControllerError):
    """The answer has not come in time."""


class Distrusted(ControllerError):
    """The certificate of what answers there is not trusted."""


class NotAController(ControllerError):
    """What answers there is not a controller, or one of another version."""


class Refusal(ControllerError):
    """The controller refuses; `status` is that of HTTP, `detail` the reason that it gives, or empty."""

    def __init__(self, text: str, status: int = 0, detail: str = "") -> None:
        super().__init__(text)
        self.status, self.detail = status, detail


class Forgotten(Refusal):
    """The controller does not know the path set any more."""
