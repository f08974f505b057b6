"""Files that a program of ours serves, with a library that reaches other storage, as an endpoint."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from mpx.endpoints.sftp.describe import info_of
from mpx.endpoints.sftp.endpoint import SftpEndpoint
from mpx.endpoints.sftp.wire import Attributes
from mpx.engine.endpoint import FileInfo, Kind
from mpx.errors import MpxError


class ProgramEndpoint(SftpEndpoint):
    """See SftpEndpoint."""

    @staticmethod
    def info_of(attributes: Attributes, link_target: str = "") -> FileInfo:
        """Return what is told of a name: such storage tells no modes, or makes them up."""
        return replace(info_of(attributes, link_target), mode=None)

    def make_folders(self, names: Sequence[str], *, replace_links: bool = False) -> list[bool | MpxError]:
        """See Endpoint. XRootD says of a folder that is there that it was made, so it is looked for first."""
        there = dict(zip(names, self.stats(names), strict=True))
        missing = [name for name in names if there[name] is None]
        made = dict(zip(missing, super().make_folders(missing, replace_links=replace_links), strict=True))
        results: list[bool | MpxError] = []
        parents: set[str] = set()  # which it may make, too
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
