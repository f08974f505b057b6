"""Which paths the streams of a copy take: the seam between what moves bytes and who steers them."""

from collections.abc import Callable
from typing import Protocol

from mpx.engine.path_set import DEFAULT_PATH, Side


class Paths(Protocol):
    """The paths of a copy, by name. All methods return soon and may be called from any thread."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all paths, including those that are down at present."""
        ...

    def lead_to(self, host: str, /) -> bool:
        """Return whether data from or to this address of the server takes these paths; if not, note it.

        Raises ControllerError if it does not and these paths are required.
        """
        ...

    def register(self, path: str, side: Side) -> Callable[[int], None] | None:
        """Return a callback for a new stream, or None; call it with the TCP port before using that.

        The callback waits for the controller, some seconds at most, and never raises: if it fails the stream
        takes the default path.
        """
        ...

    def ended(self, port: int, side: Side) -> None:
        """Release a port that is no longer used."""
        ...


class DefaultPath:
    """The single path that the network chooses."""

    names = (DEFAULT_PATH,)

    def lead_to(self, _: str, /) -> bool:
        """See Paths."""
        return True

    def register(self, path: str, side: Side) -> None:
        """See Paths."""

    def ended(self, port: int, side: Side) -> None:
        """See Paths."""
