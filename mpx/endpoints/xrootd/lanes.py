"""The processes of one copy that have XRootD's client library, and what lets them in."""

from mpx.endpoints.sftp.program_lanes import ProgramLanes
from mpx.endpoints.xrootd.login import XrootdLogin
from mpx.endpoints.xrootd.process import XrootdProcess
from mpx.engine.endpoint import Admission
from mpx.report import OnNote, no_note


class XrootdLanes(ProgramLanes):
    """See SftpLanes."""

    def __init__(self, login: XrootdLogin, note: OnNote = no_note) -> None:
        super().__init__(login.location.host, lambda: XrootdProcess(login), note)
        self._login = login

    def url_of(self, name: str) -> str:
        """Return a file there, as another server is told."""
        return f"{self._login.url}{name}"

    @property
    def place(self) -> str:
        """The host with its port, as one host may have several servers."""
        return self._login.location.authority

    @property
    def admission(self) -> Admission | None:
        """What lets us in, as far as it says until when."""
        return self._login.admission
