"""What ssh tells of its login (LogLevel DEBUG1): whether another one would need somebody who types.

A login that asks in vain is one that failed, for those who count them at the server (fail2ban, and sshd's
own PerSourcePenalties). So none is tried where the first one shows what would become of it.

Imports little, as process.py.
"""

import base64
import binascii
import os
import re
import stat

_METHOD = re.compile(
    r"^(?:debug1: )?(?:Authenticated(?: to .*)? using \"([a-z0-9@.-]+)\"( with partial success)?\.?"
    r"|Authentication succeeded \(([a-z0-9@.-]+)\)\.?)$"
)
_ACCEPTED = re.compile(r"^debug1: Server accepts key: (.*) (\S+) (?:SHA256|MD5):\S+(.*)$")
_ASKED = re.compile(r"^debug1: read_passphrase: ")
_UNATTENDED = ("publickey", "hostbased", "gssapi-with-mic", "gssapi-keyex", "none")
_NEW_FORMAT = b"openssh-key-v1\0"


def has_logged_in(told: str) -> bool:
    """Tell whether ssh has logged in, by what it said; not where it has joined a connection."""
    return any((found := _METHOD.match(line)) and not found[2] for line in told.splitlines())


def needs_somebody(told: str) -> bool | None:
    """Tell whether a login like the one that ssh told of asks the user for something; None: not known."""
    lines = told.splitlines()
    methods = [found[1] or found[3] for line in lines if (found := _METHOD.match(line))]
    if not methods:
        return None
    if any(method not in _UNATTENDED for method in methods):
        return True
    if methods[-1] != "publickey":
        return False
    keys = [found for line in lines if (found := _ACCEPTED.match(line))]
    if any(_ASKED.match(line) for line in lines):
        return True
    if not keys:
        return None
    path, kind, source = keys[-1].groups()
    if " agent" in source:
        return None if "SK" in kind else False
    return _is_locked(path)


def _is_locked(path: str) -> bool | None:
    """Tell whether a private key is encrypted; None where that is not known."""
    try:
        # The other end can write such lines, too, with the name of what would never end.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with open(fd, "rb") as file:  # noqa: PTH123  pathlib is not imported yet
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                return None
            content = file.read(65536)
    except OSError:
        return None
    begin, _, rest = content.strip().partition(b"\n")
    if begin == b"-----BEGIN OPENSSH PRIVATE KEY-----":
        try:
            key = base64.b64decode(rest.partition(b"-----END")[0])
        except binascii.Error:
            return None
        cipher = key[len(_NEW_FORMAT) :]
        if not key.startswith(_NEW_FORMAT):
            return None
        return cipher[4 : 4 + int.from_bytes(cipher[:4], "big")] != b"none"
    if begin.endswith(b"PRIVATE KEY-----"):
        return b"ENCRYPTED" in content
    return None
