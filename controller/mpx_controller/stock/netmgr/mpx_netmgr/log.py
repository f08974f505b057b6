"""The log of the module, as a session has no standard error."""

from __future__ import annotations

import os
import time

MOST_CHARACTERS = 500


def log(text: str) -> None:
    """Write a line to the file that MPX_NETMGR_LOG names, or else to the system's log; never raises."""
    line = "".join(c if c.isprintable() else " " for c in text)[:MOST_CHARACTERS]
    file = os.environ.get("MPX_NETMGR_LOG")
    try:
        if file:
            with open(file, "a", encoding="utf-8") as out:  # noqa: PTH123  before anything else is imported
                out.write(f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')} mpx_netmgr[{os.getpid()}]: {line}\n")
            return
        import syslog

        syslog.openlog("mpx_netmgr", syslog.LOG_PID, syslog.LOG_DAEMON)
        syslog.syslog(syslog.LOG_NOTICE, line)
    except (OSError, ImportError):
        return
