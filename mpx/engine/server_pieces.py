"""Pieces of files of one server that another one stores, whether straight or through this host."""

from mpx.engine.file_transfer import FileTransfer
from mpx.engine.range_scheduler import Piece, RangeScheduler


def take_piece(scheduler: RangeScheduler, size_bytes: int, *, parts: bool) -> Piece | None:
    """Return the next piece, of at most so many bytes where parts can be sent; None: there is none."""
    if not parts:
        return scheduler.take_file()
    piece = scheduler.take(size_bytes)
    if piece is not None and piece.file.was_misfit and not piece.file.is_streamed:
        piece.file.take_all()  # what is stored beyond its end goes only with a file that is stored anew
        return Piece(piece.file, 0, piece.file.size_bytes)
    return piece


def is_stored_anew(piece: Piece, *, parts: bool) -> bool:
    """Tell whether the receiver is to store the file of a piece anew, whatever is there.

    `parts`: of files can be sent and stored.
    """
    file: FileTransfer = piece.file
    is_all = piece.start == 0 and piece.end == file.size_bytes
    return file.is_streamed or (is_all and (file.is_small or file.was_misfit or not parts))
