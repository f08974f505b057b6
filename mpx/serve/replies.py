"""Replies that say no: one exception, and the one table from what failed to what the client is told.

The codes and the `c=` words are those of the Grid Community Toolkit (GCT), so that clients written for
it classify our errors as they do those of a stock server.
"""

import errno
import os

from mpx.endpoints.ftp.wire import reply_line

_BY_ERRNO = {
    errno.ENOENT: (550, "PATH_NOT_FOUND"),
    errno.EACCES: (550, "PERMISSION_DENIED"),
    errno.EPERM: (550, "PERMISSION_DENIED"),
    errno.EROFS: (550, "PERMISSION_DENIED"),
    errno.ELOOP: (550, "PERMISSION_DENIED"),
    errno.ENOTDIR: (550, "NOT_A_DIRECTORY"),
    errno.EISDIR: (550, "IS_A_DIRECTORY"),
    errno.ENOTEMPTY: (550, "INTERNAL_ERROR"),
    errno.EBUSY: (550, "INTERNAL_ERROR"),
    errno.EINVAL: (550, "INTERNAL_ERROR"),
    errno.EXDEV: (550, "INTERNAL_ERROR"),
    errno.ENAMETOOLONG: (553, "INVALID_PATH_NAME"),
    errno.EEXIST: (553, "PATH_EXISTS"),
    errno.EFBIG: (552, "INTERNAL_ERROR"),
    errno.ENOSPC: (552, "NO_SPACE_LEFT"),
    errno.EDQUOT: (552, "QUOTA_EXCEEDED"),
}


class RefusalReply(Exception):
    """A command is answered with this reply instead of being done."""

    def __init__(self, code: int, *lines: str) -> None:
        super().__init__(code, *lines)
        self.reply = reply_line(code, *lines)


class DataChannelError(Exception):
    """A data connection broke, stalled, or carried what GridFTP does not allow."""

    code = 426


class NoDataConnection(DataChannelError):
    """No data connection came about at all."""

    code = 425


def error_block(code: int, word: str, number: int, reason: str, text: str) -> bytes:
    """Return an error reply as the GCT writes them: class word, errno, our words, the system's words."""
    return reply_line(
        code,
        f"GlobusError: v=1 c={word}",
        f"GridFTP-Errno: {number}",
        f"GridFTP-Reason: {reason}",
        f"GridFTP-Error-String: {text}",
        "End.",
    )


def reply_for(error: Exception, reason: str) -> bytes:
    """Return the reply for anything a command may raise; `reason` says what was being done."""
    if isinstance(error, RefusalReply):
        return error.reply
    if isinstance(error, DataChannelError):
        return error_block(error.code, "DATA_CHANNEL_COMMUNICATION_FAILURE", 0, reason, str(error))
    if isinstance(error, OSError) and error.errno:
        code, word = _BY_ERRNO.get(error.errno, (451, "INTERNAL_ERROR"))
        return error_block(code, word, error.errno, reason, error.strerror or os.strerror(error.errno))
    return error_block(500, "INTERNAL_ERROR", 0, reason, "unexpected; the server's log says more")
