"""Names and messages as they are shown to people: nothing in them can move the cursor or break a line."""

import re

_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\udc80-\udcff]")


def shown(text: str) -> str:
    """Return the text with control characters, and bytes that are not UTF-8, written as \\xNN or \\uNNNN."""
    return _UNSAFE.sub(_escape, text)


def quoted(name: str) -> str:
    """Return a name as it is shown, in quotation marks: its ends may be blanks."""
    return f"'{shown(name)}'"


def named(name: str) -> str:
    """Return a name as it is shown in a message: as it is, quoted where something in it has to be escaped."""
    return quoted(name) if _UNSAFE.search(name) else name


def _escape(found: re.Match[str]) -> str:
    code = ord(found.group())
    if 0xDC80 <= code <= 0xDCFF:  # a byte that was no UTF-8, as surrogateescape keeps it
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
