"""Where it is written down what becomes of files."""

from dataclasses import dataclass

from mpx.report import Report
from mpx.transfer.journal import Journal
from mpx.transfer.sent_notes import SentNotes


@dataclass(frozen=True, slots=True)
class Records:
    """The records of one copy: for the user, for the run that continues it, and for later copies."""

    report: Report
    journal: Journal
    sent: SentNotes
