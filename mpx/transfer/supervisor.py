"""Whom carriers tell what becomes of files, and whom they ask about them."""

from mpx.engine.checksum_choice import ChecksumChoice
from mpx.report import Report, Severity
from mpx.transfer.commit import Committer
from mpx.transfer.ends import Ends
from mpx.transfer.resume_proof import ResumeVerifier


class CopySupervisor:
    """See Supervisor; each question goes to the part of the copy that can answer it."""

    def __init__(
        self,
        committer: Committer,
        prover: ResumeVerifier,
        ends: Ends,
        checksums: ChecksumChoice,
        report: Report,
    ) -> None:
        self.whole, self.given_up, self.forgot = committer.whole, committer.given_up, committer.forgot
        self.prove = prover
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
