"""The checksum of a short file, asked for in one write with its transfer: it costs no round trip."""

from mpx.choices import NONE
from mpx.endpoints.ftp.checksum_forms import Form, digest_in, forms
from mpx.endpoints.ftp.session import ClientSession
from mpx.endpoints.ftp.wire import Reply
from mpx.engine.endpoint import Part
from mpx.engine.file_transfer import FileTransfer


class ChecksumBehind:
    """A question that stands behind the transfer of one file; `name`: of the file at the server."""

    def __init__(self, form: Form, file: FileTransfer, name: str) -> None:
        self._form, self._file = form, file
        self._part = Part(name, 0, file.size_bytes, is_whole=True)
        self.is_answered = False

    @property
    def line(self) -> bytes:
        """The command."""
        return self._form.question(self._part)

    def heard(self, reply: Reply) -> None:
        """Keep the answer with the file; without one it is asked for later, as of other files are."""
        self.is_answered = True
        digest = digest_in(reply.lines, self._form.algorithm, self._part) if reply.is_ok else None
        self._file.far_digest = (self._part.end, digest) if digest else None


def checksum_behind(session: ClientSession, file: FileTransfer, name: str) -> ChecksumBehind | None:
    """Return the question for the checksum that is taken of a file here; None where CKSM has no answer."""
    algorithm = file.sums.algorithm
    if algorithm == NONE or file.is_streamed or not file.size_bytes:
        return None
    for form in forms(session.features, algorithm):
        if form.verb == "CKSM":
            return ChecksumBehind(form, file, name)
    return None
