"""Names of files that one server of XRootD cannot ask another one for. Pure."""

from mpx.text import quoted


def why_not_straight(source: str) -> str:
    """Return why a file cannot be read by another server; empty where it can.

    It asks for the file by `...&tpc.lfn=NAME`, and waits for another one than the source was told of.
    """
    if "&" not in source:
        return ""
    return f"the name {quoted(source)} has a &, at which XRootD ends what one server asks another one for"
