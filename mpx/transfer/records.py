"""Where it is written down what becomes of files."""

from dataclasses import dataclass, field

from mpx.report import Report
from mpx.transfer.committed_names import CommittedNames
from mpx.transfer.journal import Journal
from mpx.transfer.sent_notes import SentNotes


@dataclass(frozen=True, slots=True)
class Records:
    """The records of one copy: for the user, the run that continues it, later copies, and a fallback."""

    report: Report
    journal: Journal
    sent: SentNotes
    committed: CommittedNames = field(default_factory=CommittedNames)
