"""Files that a program of ours serves, with a library that reaches other storage, as an endpoint."""

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from mpx.endpoints.sftp import wire
from mpx.endpoints.sftp.describe import info_of
from mpx.endpoints.sftp.endpoint import SftpEndpoint
from mpx.endpoints.sftp.session import MOST_QUESTIONS, Request, SftpSession, request
from mpx.endpoints.sftp.wire import Attributes, PacketKind, Reply
from mpx.engine.endpoint import FileInfo, Kind
from mpx.errors import MpxError, UsageError

MOST_FORESEEN = 16  # names


class ProgramEndpoint(SftpEndpoint):
    """See SftpEndpoint."""

    def foresee(self, names: Sequence[str]) -> None:
        """See Endpoint. The questions go out with the login."""
        asked = []
        for name in names[:MOST_FORESEEN]:
            with contextlib.suppress(UsageError):  # which is said when it is used
                self.check_name(name)
                asked.append(request(PacketKind.STAT, wire.name(name or ".")))
        self._options = replace(self._options, ahead=tuple(asked))

    @property
    def session(self) -> SftpSession:
        """See SftpEndpoint."""
        session = super().session
        if self._options.ahead:  # of what is known later nothing is foreseen
            self._options = replace(self._options, ahead=())
        return session

    def _ask(
        self, requests: Sequence[Request], *, at_once: int = MOST_QUESTIONS, timeout_s: float | None = None
    ) -> list[Reply]:
        if not requests:
            return []
        session = self.session
        if any(each.kind is not PacketKind.STAT for each in requests):
            session.forget()
        known = [session.known(each) for each in requests]
        unknown = [each for each, reply in zip(requests, known, strict=True) if reply is None]
        asked = iter(super()._ask(unknown, at_once=at_once, timeout_s=timeout_s))
        return [reply or next(asked) for reply in known]

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
