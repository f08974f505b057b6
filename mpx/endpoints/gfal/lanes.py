"""The processes that have gfal2: those that one server is asked by, and those that copy from it or to it."""

from collections.abc import Sequence

from mpx.endpoints.gfal.process import GfalOptions, GfalProcess, Opens
from mpx.endpoints.sftp.program_lanes import ProgramLanes
from mpx.endpoints.web.bearer_tokens import BearerTokens
from mpx.location import Location
from mpx.report import OnNote, no_note


class GfalLanes(ProgramLanes):
    """See ProgramLanes."""

    def __init__(
        self,
        servers: Sequence[Location],
        options: GfalOptions,
        tokens: BearerTokens,
        note: OnNote = no_note,
        *,
        opens: Opens = Opens.NONE,
    ) -> None:
        """`servers`, `opens`: see GfalProcess."""

        def start() -> GfalProcess:
            return GfalProcess(servers, options, tokens, opens=opens)

        super().__init__(servers[0].host, start, note)
        self.location = servers[0]
        self._options, self._tokens = options, tokens

    def with_files(self, opens: Opens) -> "GfalLanes":
        """Return those that copy between this server and files of this host."""
        return GfalLanes([self.location], self._options, self._tokens, self._note, opens=opens)

    def with_other(self, other: "GfalLanes") -> "GfalLanes":
        """Return those that copy between this server and another one, with the credentials of both."""
        return GfalLanes([self.location, other.location], self._options, self._tokens)
