"""The files of a server that gfal2 reaches, as an endpoint: a program of ours serves their names by SFTP."""

from collections.abc import Callable, Sequence

from mpx.endpoints.gfal.capabilities import CHECKSUMS, GFAL
from mpx.endpoints.gfal.meaning import Trouble, trouble
from mpx.endpoints.gfal.settings import JobState
from mpx.endpoints.gfal.urls import SERVICE
from mpx.endpoints.gfal.watched_job import WatchedJob, error_of
from mpx.endpoints.sftp import wire
from mpx.endpoints.sftp.program_endpoint import ProgramEndpoint
from mpx.endpoints.xrootd.names import why_not_listed
from mpx.engine.capabilities import Capabilities, Question
from mpx.engine.endpoint import Part, Rtt
from mpx.errors import NoChecksum, UsageError
from mpx.location import ROOT_PORTS
from mpx.text import quoted

_DIGITS = {"adler32": 8, "md5": 32}


class GfalEndpoint(ProgramEndpoint):
    """See ProgramEndpoint."""

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

    def check_name(self, name: str) -> None:
        """See Endpoint."""
        super().check_name(name)
        is_grid = self.location.scheme.endswith(("gsiftp", "srm"))
        if is_grid and any(part.endswith(" ") for part in name.split("/")):
            raise UsageError(
                f"the name {quoted(name)} has a blank at its end, or a folder of it has, which gfal2 takes "
                "for no part of it; use a name without it, or another way (without --via gfal2)"
            )
        if self.location.scheme.endswith("gsiftp"):
            return
        if self.location.scheme.endswith(tuple(ROOT_PORTS)) and (why := why_not_listed(name)):
            raise UsageError(why)
        before, _, after = name.partition(SERVICE)  # of SRM
        if "?" in before + after:
            raise UsageError(
                f"the name {quoted(name)} has a ?, behind which XRootD and SRM take what follows for no part "
                "of it, and gfal2 does not tell who is there; use a name without it"
            )

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
            state = watched.run(algorithm, wire.encoded(part.name), _read_back, waits_at_first=True)
        except BaseException:
            self.close()
            raise
        if state.code:
            text, names = f"gfal2 does not compute the {algorithm} of {part.name}", (part.name,)
            refusal = error_of(state, host, text, names=names, default=self._refusal)
            found = trouble(state.code, state.message, names)
            if refusal.may_retry or found in (Trouble.MISSING, Trouble.LOGIN):
                return refusal
            return NoChecksum(refusal)
        value = state.sum.strip().lower()
        if len(value) > _DIGITS[algorithm] or value.strip("0123456789abcdef"):
            return NoChecksum(
                self._refusal(f"{host} tells something else than the {algorithm} of {part.name}")
            )
        return value.zfill(_DIGITS[algorithm])


def _read_back(state: JobState) -> int:
    """Return how much of a file has been read back."""
    return state.size_bytes
