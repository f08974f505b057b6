"""Names of files that XRootD cannot list, or that one server cannot ask another one for. Pure."""

from mpx.text import quoted


def why_not_straight(source: str) -> str:
    """Return why a file cannot be read by another server; empty where it can.

    It asks for the file by `...&tpc.lfn=NAME`, and waits for another one than the source was told of.
    """
    if "&" not in source:
        return ""
    return f"the name {quoted(source)} has a &, at which XRootD ends what one server asks another one for"


def why_not_listed(name: str) -> str:
    """Return why a name would spoil its folder, where XRootD stores it; empty where it would not."""
    if "\n" in name or "\r" in name:
        return (
            f"the name {quoted(name)} has a line feed or carriage return in it, and XRootD lists one "
            "name in a line: its whole folder could not be read any more; rename it"
        )
    return ""
