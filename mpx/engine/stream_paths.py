"""Which paths the streams of a copy take: the seam between what moves bytes and who steers them."""

from collections.abc import Callable
from typing import Protocol

from mpx.engine.path_set import DEFAULT_PATH, Side


class Paths(Protocol):
    """The paths of a copy, by name. All methods return soon and may be called from any thread."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all paths, those that are lost for now with them."""
        ...

    def lead_to(self, host: str, /) -> bool:
        """Return whether data from or to this address of the server takes these paths.

        Where it does not, that is noted; raises ControllerError where it has to.
        """
        ...

    def register(self, path: str, side: Side) -> Callable[[int], None] | None:
        """Return what is to be told the TCP port of a stream before it connects or listens; None: nobody.

        It waits for a controller, at most some seconds, and never raises: at worst the stream is not steered.
        """
        ...

    def ended(self, port: int, side: Side) -> None:
        """The port is not used any more."""
        ...


class DefaultPath:
    """The one that the network chooses."""

    names = (DEFAULT_PATH,)

    def lead_to(self, _: str, /) -> bool:
        """See Paths."""
        return True

    def register(self, path: str, side: Side) -> None:
        """See Paths."""

    def ended(self, port: int, side: Side) -> None:
        """See Paths."""
