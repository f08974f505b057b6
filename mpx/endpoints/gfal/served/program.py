"""The program that has gfal2, run by the system's Python, which has its binding: `python3 -I program.py`.

It serves SFTP on its standard input, which is a socket, to the mpx that started it. It uses nothing of what
that one has installed; settings and credentials come by the environment.
"""

import contextlib
import os
import select
import signal
import socket
import sys
import threading
from pathlib import Path
from typing import NoReturn

MOST_OPEN = 256


def end(code: int, why: str) -> NoReturn:
    """End at once, from any thread, with a line for who reads what we say."""
    with contextlib.suppress(OSError):  # it takes so much and no more
        os.write(2, f"\n{why}\n".encode("utf-8", "replace"))
    os._exit(code)


def main() -> None:
    """Serve until whoever started us has gone, whatever signals a terminal sends to both."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    connection = socket.socket(fileno=os.dup(0))
    os.dup2(2, 1)  # what a plugin prints is no part of the dialogue
    sys.path.append(str(Path(__file__).resolve().parents[4]))
    from mpx.endpoints.confined import confine, needed
    from mpx.endpoints.gfal.settings import VARIABLE, parse_settings
    from mpx.endpoints.sftp.served.server import StorageServer
    from mpx.endpoints.xrootd.exits import NO_LIBRARY

    settings = parse_settings(os.environ.pop(VARIABLE))
    if settings.writes is not None:
        confine([*needed(os.environ), *settings.reads], settings.writes)  # before a library has a thread
    try:
        from mpx.endpoints.gfal.served.storage import GfalStorage
    except ImportError as error:
        end(NO_LIBRARY, str(error))
    storage = GfalStorage(settings, end)

    def leave() -> None:
        """Wait until nobody asks any more, whatever gfal2 waits for."""
        poll = select.poll()
        poll.register(connection, select.POLLRDHUP)
        poll.poll()
        storage.close()
        os._exit(0)

    threading.Thread(target=leave, name="leave", daemon=True).start()
    with connection:
        StorageServer(storage, connection, MOST_OPEN).serve()
    os._exit(0)  # threads of libraries may still wait for what nobody needs


if __name__ == "__main__":
    main()
