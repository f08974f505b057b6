"""What a carrier is given, made up for tests that run one part of it alone."""

import threading
from collections.abc import Sequence

from mpx.engine.carrier import CarrierContext
from mpx.engine.endpoint import FileInfo, Kind
from mpx.engine.file_queue import FileQueue
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.path_control import controls
from mpx.engine.path_set import DEFAULT_PATH
from mpx.engine.stop import Failure
from mpx.errors import MpxError
from mpx.options import CopyOptions
from mpx.report import Severity


class Onlooker:
    """A supervisor that is content with everything."""

    def whole(self, file: FileTransfer) -> None: ...

    def given_up(self, file: FileTransfer, error: MpxError) -> None: ...

    def forgot(self, file: FileTransfer) -> None: ...

    def again(self, file: FileTransfer, start: int, end: int) -> None: ...

    def prove(self, file: FileTransfer) -> None: ...

    def describe(self, name: str, *, anew: bool = False) -> FileInfo | None: ...

    def relies_on_checksums(self) -> bool:
        return False

    def stream_ended(self, subflows: int) -> None: ...

    def note(self, text: str, severity: Severity = Severity.INFO, /) -> None: ...


def a_context(*, paths: Sequence[str] = (DEFAULT_PATH,), **options: object) -> CarrierContext:
    failure = Failure(threading.Event())
    return CarrierContext(
        options=CopyOptions(**options),
        queue=FileQueue(failure.cancel),
        controls=controls(paths, failure.cancel, None),
        failure=failure,
        supervisor=Onlooker(),
    )


def a_file(size: int, *, sums: str = "none") -> FileTransfer:
    return FileTransfer("source", "final", ".part", FileInfo(Kind.FILE, size, 1.0, 0o644), sums=sums)
