"""The files of a server of XRootD, as an endpoint: a program of ours serves them by SFTP."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from mpx.endpoints.sftp.describe import info_of
from mpx.endpoints.sftp.endpoint import SftpEndpoint
from mpx.endpoints.sftp.lanes import LaneOptions
from mpx.endpoints.sftp.wire import Attributes
from mpx.endpoints.xrootd.capabilities import XROOTD
from mpx.endpoints.xrootd.file_sums import FileSums
from mpx.endpoints.xrootd.lanes import XrootdLanes
from mpx.engine.capabilities import Capabilities, Question
from mpx.engine.endpoint import FileInfo, Kind, Part, Protection
from mpx.errors import MpxError, UsageError
from mpx.location import Location
from mpx.text import quoted


class XrootdEndpoint(SftpEndpoint):
    """See SftpEndpoint."""

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

    @staticmethod
    def info_of(attributes: Attributes, link_target: str = "") -> FileInfo:
        """Return what is told of a name: XRootD tells no modes."""
        return replace(info_of(attributes, link_target), mode=None)

    def check_name(self, name: str) -> None:
        """See Endpoint."""
        super().check_name(name)
        try:
            name.encode()
        except UnicodeEncodeError:
            raise UsageError(
                f"the name {quoted(name)} is no UTF-8, in which XRootD has all names; rename it"
            ) from None
        if "?" in name:
            raise UsageError(
                f"the name {quoted(name)} has a ?, behind which XRootD takes what follows for no part of it, "
                "and mpx passes nothing on as such; use a name without it"
            )

    def make_folders(self, names: Sequence[str], *, replace_links: bool = False) -> list[bool | MpxError]:
        """See Endpoint. XRootD says of a folder that is there that it was made, so it is looked for first."""
        there = dict(zip(names, self.stats(names), strict=True))
        missing = [name for name in names if there[name] is None]
        made = dict(zip(missing, super().make_folders(missing, replace_links=replace_links), strict=True))
        results: list[bool | MpxError] = []
        parents: set[str] = set()  # which it makes, too
        for name in names:
            found = there[name]
            if isinstance(found, FileInfo) and found.kind is not Kind.FOLDER:
                host = self.location.host
                results.append(self._refusal(f"{host} cannot make the folder {name}: a file has that name"))
            elif isinstance(found, MpxError):
                results.append(found)
            else:
                results.append(name not in parents and made.get(name, False))
                parents.update(map(str, PurePosixPath(name).parents))
        return results

    def checksums(
        self,
        algorithm: str,
        parts: Sequence[Part],
        stop: Callable[[], bool],  # noqa: ARG002  the session asks it
    ) -> list[str | Exception]:
        """See Endpoint. Of whole files."""
        return FileSums(self._ask, self.location.host, self._refused, self._refusal).of(algorithm, parts)
