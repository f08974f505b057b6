"""Keys of objects as names of files: a name is a slash and a key. Pure."""

from urllib.parse import unquote_to_bytes

from mpx.endpoints.web.names import HrefError
from mpx.text import quoted

_MOST_SHOWN = 200  # characters of a key in a message


def prefix_of(name: str) -> str:
    """Return what the keys in a folder begin with; empty for all of a bucket."""
    key = name[1:].rstrip("/") if name.startswith("/") else name.rstrip("/")
    return f"{key}/" if key else ""


def decoded_key(text: str) -> str:
    """Return a key of a listing with `encoding-type=url`, where a blank is `+`, and `+` is `%2B`."""
    raw = unquote_to_bytes(text.replace("+", " ").encode("utf-8", "surrogateescape"))
    return raw.decode("utf-8", "surrogateescape")


def child_of_key(key: str, prefix: str) -> str | None:
    """Return the name that a key or a common prefix has in a folder; None for the folder itself.

    Raises HrefError for what is legal in S3 and no name of a file right in that folder.
    """
    if not key.startswith(prefix):
        raise HrefError(f"{quoted(key[:_MOST_SHOWN])}, outside of the folder")
    name = key[len(prefix) :]
    if not name:
        return None
    name = name.removesuffix("/")
    if not name:
        raise HrefError(f"{quoted(key[:_MOST_SHOWN])}, with an empty part between slashes")
    if name in (".", "..") or "/" in name or "\0" in name:
        raise HrefError(f"{quoted(key[:_MOST_SHOWN])}, with {quoted(name[:_MOST_SHOWN])} as a name")
    return name
