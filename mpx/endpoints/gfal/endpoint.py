"""The files of a server that gfal2 reaches, as an endpoint: a program of ours serves their names by SFTP."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from mpx.endpoints.gfal.capabilities import CHECKSUMS, GFAL
from mpx.endpoints.gfal.meaning import Trouble, trouble
from mpx.endpoints.gfal.watched_job import WatchedJob, error_of
from mpx.endpoints.sftp import wire
from mpx.endpoints.sftp.describe import info_of
from mpx.endpoints.sftp.endpoint import SftpEndpoint
from mpx.endpoints.sftp.wire import Attributes
from mpx.engine.capabilities import Capabilities, Question
from mpx.engine.endpoint import FileInfo, Kind, Part, Rtt
from mpx.errors import MpxError, NoChecksum, UsageError
from mpx.text import quoted

_DIGITS = {"adler32": 8, "md5": 32}


class GfalEndpoint(SftpEndpoint):
    """See SftpEndpoint."""

    @property
    def capabilities(self) -> Capabilities:
        """See Endpoint."""
        return GFAL

    def find_out(self, *questions: Question) -> Capabilities:  # noqa: ARG002  what gfal2 does shows it
        """See Endpoint."""
        return GFAL

    def measure_rtt(self) -> Rtt | None:
        """See Endpoint. What is between it and us is a process of ours."""
        return None

    @staticmethod
    def info_of(attributes: Attributes, link_target: str = "") -> FileInfo:
        """Return what is told of a name: gfal2 makes modes up for most servers."""
        return replace(info_of(attributes, link_target), mode=None)

    def check_name(self, name: str) -> None:
        """See Endpoint."""
        super().check_name(name)
        if "?" in name and "root" in self.location.scheme:
            raise UsageError(
                f"the name {quoted(name)} has a ?, behind which XRootD takes what follows for no part of it; "
                "use a name without it"
            )

    def make_folders(self, names: Sequence[str], *, replace_links: bool = False) -> list[bool | MpxError]:
        """See Endpoint. Some servers say of one that is there that it was made: it is looked for first."""
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

    def checksums(
        self, algorithm: str, parts: Sequence[Part], stop: Callable[[], bool]
    ) -> list[str | Exception]:
        """See Endpoint. Of whole files; where the server computes none the file is read back."""
        return [self._checksum(algorithm, part, stop) for part in parts]

    def _checksum(self, algorithm: str, part: Part, stop: Callable[[], bool]) -> str | Exception:
        host = self.location.host
        if algorithm not in CHECKSUMS or not part.is_whole:
            return NoChecksum(self._refusal(f"{host} has no {algorithm} of that by gfal2"))
        watched = WatchedJob(self.session, self._options.timeout_s, stop)
        try:
            state = watched.run(algorithm, wire.encoded(part.name), lambda _: 0, is_waited_for=True)
        except BaseException:
            self.close()
            raise
        if state.code:
            refusal = error_of(state, host, f"compute the {algorithm} of {part.name}", default=self._refusal)
            if refusal.may_retry or trouble(state.code, state.message) in (Trouble.MISSING, Trouble.LOGIN):
                return refusal
            return NoChecksum(refusal)
        value = state.sum.strip().lower()
        if len(value) > _DIGITS[algorithm] or value.strip("0123456789abcdef"):
            return NoChecksum(
                self._refusal(f"{host} tells something else than the {algorithm} of {part.name}")
            )
        return value.zfill(_DIGITS[algorithm])
