"""Hrefs of a listing: the first line is the folder that was asked for, each other one an href."""

import os
from itertools import product

from mpx.endpoints.web.names import HrefError, child_name, decoded, encoded

SEEDS = [
    b"/store/caf%C3%A9/\n/store/caf\xc3\xa9/\n/store/caf%c3%a9/a%20b\nhttps://h.example:8443//store/caf%C3%A9/%ff/",
    b"/f\n/f/..\n/f/%2e%2e/\n/f/a%2Fb\n/f/a%00b\n/f/x/y\n/g/x\nx\n/f/x?y\n/f/x#y;z\n/f/100% sure",
    b"/\n/\nhttp://h\nDAVS://[::1]:1/x\n//h/x",
]
ALLOWED = ()
_LONGEST_FOLDER_BYTES = 1024  # it is read for each href


def parse(data: bytes) -> None:
    """Read each href; its name is one, and comes back when it is sent."""
    first, *others = data.split(b"\n")
    folder = os.fsdecode(first[:_LONGEST_FOLDER_BYTES]).rstrip("/") + "/"
    for href, is_encoded in product(map(os.fsdecode, others), (True, False)):
        try:
            name = child_name(href, folder, is_encoded=is_encoded)
        except HrefError as error:
            assert len(str(error)) < 2000
            continue
        if name is not None:
            assert name not in ("", ".", "..") and not {"/", "\0"} & set(name)
            assert os.fsencode(decoded(encoded(name))) == os.fsencode(name)
            if _is_sent(folder):
                assert child_name(folder + encoded(name), folder) == decoded(encoded(name))


def _is_sent(folder: str) -> bool:
    """Tell whether a folder is written as we send it: others may be refused within an href."""
    is_plain = folder.startswith("/") and folder == encoded(decoded(folder))
    return is_plain and not {".", ".."} & set(folder.split("/"))
