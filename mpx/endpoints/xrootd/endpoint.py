"""The files of a server of XRootD, as an endpoint: a program of ours serves them by SFTP."""

from collections.abc import Callable, Sequence

from mpx.endpoints.sftp.lanes import LaneOptions
from mpx.endpoints.sftp.program_endpoint import ProgramEndpoint
from mpx.endpoints.xrootd.capabilities import XROOTD
from mpx.endpoints.xrootd.file_sums import FileSums
from mpx.endpoints.xrootd.lanes import XrootdLanes
from mpx.endpoints.xrootd.names import why_not_listed
from mpx.engine.capabilities import Capabilities, Question
from mpx.engine.endpoint import Part, Protection
from mpx.errors import UsageError
from mpx.location import Location
from mpx.text import quoted


class XrootdEndpoint(ProgramEndpoint):
    """See ProgramEndpoint."""

    def __init__(
        self, location: Location, lanes: XrootdLanes, options: LaneOptions, *, writing: bool
    ) -> None:
        super().__init__(location, lanes, options, writing=writing)
        self._admitted = lanes

    @property
    def protection(self) -> Protection:  # type: ignore[override]  # it is asked anew
        """See Endpoint."""
        return Protection(admission=self._admitted.admission)

    @property
    def capabilities(self) -> Capabilities:
        """See Endpoint."""
        return XROOTD

    def find_out(self, *questions: Question) -> Capabilities:  # noqa: ARG002  a file shows which there are
        """See Endpoint."""
        return XROOTD

    def check_name(self, name: str) -> None:
        """See Endpoint."""
        super().check_name(name)
        try:
            name.encode()
        except UnicodeEncodeError:
            raise UsageError(
                f"the name {quoted(name)} is no UTF-8, in which XRootD has all names; rename it"
            ) from None
        if why := why_not_listed(name):
            raise UsageError(why)
        if "?" in name:
            raise UsageError(
                f"the name {quoted(name)} has a ?, behind which XRootD takes what follows for no part of it, "
                "and mpx passes nothing on as such; use a name without it"
            )

    def checksums(
        self,
        algorithm: str,
        parts: Sequence[Part],
        stop: Callable[[], bool],  # noqa: ARG002  the session asks it
    ) -> list[str | Exception]:
        """See Endpoint. Of whole files."""
        return FileSums(self._ask, self.location.host, self._refused, self._refusal).of(algorithm, parts)
