"""Whole numbers as peers write them, in any protocol. Pure."""

_MOST_DIGITS = 19  # of a number below 2**63


def parse_whole(text: str) -> int:
    """Read a whole number in ASCII digits, from 0 to below 2**63; raises ValueError for all else."""
    if len(text) > _MOST_DIGITS or not (text.isascii() and text.isdigit()) or int(text) >= 1 << 63:
        raise ValueError(f"not a number: {text[:80]!r}")
    return int(text)


def read_size(text: str) -> int | None:
    """Read a size as servers write it; None for what no file can have: no number, negative, too large."""
    try:
        return parse_whole(text)
    except ValueError:
        return None
