"""The program that has XRootD's client library: `python -m mpx.endpoints.xrootd root://HOST:PORT`.

It serves SFTP on its standard input, which is a socket, to the mpx that started it. Credentials and settings
come by the environment, as the library takes them. It may read what it needs for that, and write nothing:
servers have the library open files of this host.
"""

import contextlib
import os
import socket
import sys
import time
from types import TracebackType
from typing import NoReturn

from mpx.endpoints.confined import confine, needed
from mpx.endpoints.sftp.served.server import StorageServer
from mpx.endpoints.xrootd.exits import GONE, NO_LIBRARY

MOST_OPEN = 256
TOLD_WITHIN_S = 5.0


def end(code: int, why: str) -> NoReturn:
    """End at once, from any thread, with a line for who reads what we say."""
    with contextlib.suppress(OSError):  # it takes so much and no more
        os.write(2, f"\n{why}\n".encode("utf-8", "replace"))
    os._exit(code)


def main() -> None:
    """Serve until whoever started us has gone."""
    connection = socket.socket(fileno=os.dup(0))
    os.dup2(2, 1)  # what a plugin prints is no part of the dialogue
    try:
        from mpx.endpoints.xrootd.storage import XrootdStorage
    except ImportError as error:
        end(NO_LIBRARY, str(error))
    confine(needed(os.environ))  # before the library has a thread
    storage = XrootdStorage(sys.argv[1], end)

    def printed(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        """Is all that the binding calls where it fails in a thread of the library, which it may not survive.

        So nothing returns to it: who asked is told, and has another process for what follows.
        """
        sys.__excepthook__(kind, error, trace)
        storage.undelivered(error)
        time.sleep(TOLD_WITHIN_S)
        end(GONE, str(error))

    sys.excepthook = printed
    with connection:
        StorageServer(storage, connection, MOST_OPEN).serve()
    os._exit(0)  # threads of the library may still wait for what nobody needs


if __name__ == "__main__":
    main()
