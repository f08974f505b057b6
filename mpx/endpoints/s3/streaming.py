"""Uploads of what has no known size (a pipe, a file of /proc): part after part is kept until it is stored."""

from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeVar

from mpx.endpoints.s3.beginning import new_upload
from mpx.endpoints.s3.parts import MOST_PARTS, WHOLE_BYTES, PartedFile
from mpx.endpoints.s3.questions import S3Questions
from mpx.endpoints.s3.sending import Bytes, PartSender, Sums
from mpx.engine.carrier import CarrierContext
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.retry import Retry
from mpx.engine.source_stream import SourceStream
from mpx.errors import ConnectionLost, DestinationError, TransferTimeout
from mpx.units import format_size

_Found = TypeVar("_Found")


class StreamUploader(Protocol):
    """The worker that sends what is read."""

    context: CarrierContext
    sender: PartSender

    def put_whole(self, file: FileTransfer, some: Bytes, sums: Sums) -> None:
        """Store an object in one request."""
        ...

    def send_part(self, parted: PartedFile, number: int, some: Bytes) -> None:
        """Store a part."""
        ...

    def drop(self) -> None:
        """Close all connections."""
        ...


def send_stream(worker: StreamUploader, questions: S3Questions, file: FileTransfer, fd: int) -> None:
    """Read a file to its end and store it: in one request where it is short, else in parts.

    What was read cannot be read again, so that each request is repeated here where that may help. Raises what
    a refusal means, ConnectionLost and the like, SourceError, Interrupted.
    """
    buffer = memoryview(bytearray(WHOLE_BYTES))
    source = SourceStream(file, fd, worker.context.failure.cancel.is_set)
    came = source.read(buffer)
    if not file.is_streamed:  # its end was seen
        start, end = came or (0, 0)
        some = Bytes(file.source, fd, start, end, buffer[: end - start])
        sums = worker.sender.sums(some)
        _patiently(worker, lambda: worker.put_whole(file, some, sums))
        file.landed(start, end)
        return
    note = worker.context.supervisor.note
    parted = _patiently(worker, lambda: new_upload(questions, file, WHOLE_BYTES, note))
    while came is not None and not parted.is_dead:
        number = parted.grow()
        if number > MOST_PARTS:
            most = format_size(MOST_PARTS * WHOLE_BYTES)
            raise DestinationError(f"{file.named()} has more than {most}: copy it to a file first")
        start, end = came
        part = Bytes(file.source, fd, start, end, buffer[: end - start])
        _patiently(worker, partial(worker.send_part, parted, number, part))
        came = source.read(buffer)


def _patiently(worker: StreamUploader, ask: Callable[[], _Found]) -> _Found:
    """Ask as often as --retries allows, over another connection each time."""
    retry = Retry(worker.context.options.retries, worker.context.failure.cancel)
    while True:
        try:
            return ask()
        except (ConnectionLost, TransferTimeout) as error:
            worker.drop()
            retry.again(error)
            worker.context.supervisor.note(f"trying again after: {error}")
