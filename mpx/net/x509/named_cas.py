"""What `--ca` names: a file of CAs, or a folder of them."""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from mpx.errors import UsageError
from mpx.text import named

OTHER = "name a file or folder of CAs in PEM"
_HASHED = re.compile(r"[0-9a-f]{8}\.[0-9]+")  # as openssl rehash names certificates
_SUFFIXES = (".pem", ".crt")


def are_hashed(names: Iterable[str]) -> bool:
    """Tell whether a folder with these names is one in which OpenSSL finds CAs itself."""
    return any(map(_HASHED.fullmatch, names))


def files_of(ca: str) -> list[str] | None:
    """Return the files that hold the CAs; None: a folder in which OpenSSL finds them itself.

    Whether a file can be read is not looked at. Raises UsageError for a folder without any.
    """
    try:
        names = sorted(os.listdir(ca)) if os.path.isdir(ca) else None
    except OSError as error:
        raise UsageError(f"cannot read the folder --ca {named(ca)}: {error.strerror}; {OTHER}") from None
    if names is None:
        return [ca]
    if are_hashed(names):
        return None
    files = [str(Path(ca, name)) for name in names if name.endswith(_SUFFIXES)]
    if not files:
        raise UsageError(
            f"the folder --ca {named(ca)} holds no CA: neither *.pem nor *.crt, nor names that openssl "
            f"rehash makes; {OTHER}"
        )
    return files


def unreadable(file: str, error: OSError) -> UsageError:
    """Return that a file of CAs cannot be read."""
    return UsageError(f"cannot read {named(file)}, of --ca: {error.strerror}; {OTHER}")


def no_certificate(file: str) -> UsageError:
    """Return that a file holds none."""
    return UsageError(f"{named(file)}, of --ca, holds no certificate in PEM; {OTHER}")
