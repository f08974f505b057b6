"""The supervisor of a copy: carriers report to it what becomes of files, and ask it about them."""

from mpx.engine.checksum_choice import ChecksumChoice
from mpx.report import Report, Severity
from mpx.transfer.commit import Committer
from mpx.transfer.ends import Ends
from mpx.transfer.resume_proof import ResumeVerifier


class CopySupervisor:
    """See Supervisor; each call goes to the part of the copy that it concerns."""

    def __init__(
        self,
        committer: Committer,
        verifier: ResumeVerifier,
        ends: Ends,
        checksums: ChecksumChoice,
        report: Report,
    ) -> None:
        self.whole, self.given_up, self.forgot = committer.whole, committer.given_up, committer.forgot
        self.again, self.prove = committer.again, verifier
        self.describe = ends.describe
        self.relies_on_checksums = checksums.rely
        self.note = report.note
        self._host, self._report = ends.host, report

    def stream_ended(self, subflows: int) -> None:
        """See Supervisor."""
        self._report.stream_ended(subflows)
        if not subflows:
            plain = f"plain TCP instead of Multipath TCP: {self._host} does not speak it"
            self._report.note(plain, Severity.NOTICE)
