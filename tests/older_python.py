"""A Python of this host that is as old as what is sent to another one may meet."""

import os
import pwd
from pathlib import Path

_INSTALLED = Path("/usr/bin/python3.9")


def home_there() -> Path:
    """The home of this account, as sshd knows it; that of the tests is another."""
    return Path(pwd.getpwuid(os.geteuid()).pw_dir)


def older_python() -> str | None:
    """A Python 3.9 of this host, if there is one."""
    for found in (*home_there().glob(".pyenv/versions/3.9.*/bin/python"), _INSTALLED):
        if found.exists():
            return str(found)
    return None
