"""Elements of DER, and the public key of a certificate, read out of that form (RFC 5280, section 4.1).

Only as much of DER as leads there: a copy that starts is not to wait for a whole library of certificates.
"""

_SEQUENCE, _INTEGER, _VERSION = 0x30, 0x02, 0xA0  # tags; the last is [0], in front of the serial number
_LONG_FORM = 0x80  # of a length: the other bits say how many bytes it has
_MOST_LENGTH_BYTES = 4
_BEFORE_KEY = (
    _INTEGER,
    _SEQUENCE,
    _SEQUENCE,
    _SEQUENCE,
    _SEQUENCE,
)  # serial, algorithm, issuer, time, subject


def public_key_info(certificate: bytes) -> bytes:
    """Return the SubjectPublicKeyInfo of a certificate, as it stands there; raises ValueError for no DER.

    It is the same in every certificate of one key, so its SHA-256 names the key.
    """
    start, end = _content(certificate, 0, len(certificate), _SEQUENCE)
    start, end = _content(certificate, start, end, _SEQUENCE)  # TBSCertificate
    if start < end and certificate[start] == _VERSION:
        _, start = _content(certificate, start, end, _VERSION)
    for tag in _BEFORE_KEY:
        _, start = _content(certificate, start, end, tag)
    _, key_end = _content(certificate, start, end, _SEQUENCE)
    return certificate[start:key_end]


def _content(data: bytes, at: int, end: int, tag: int) -> tuple[int, int]:
    """Return where the content of the element at `at` begins and ends; it is to have that tag."""
    if end - at < 2 or data[at] != tag:
        raise ValueError(f"not a certificate: no element {tag:#x} at byte {at}")
    at, length = at + 2, data[at + 1]
    if length & _LONG_FORM:
        count = length & ~_LONG_FORM
        if not 0 < count <= _MOST_LENGTH_BYTES or at + count > end:
            raise ValueError(f"not a certificate: a length of {count} bytes at byte {at}")
        length = int.from_bytes(data[at : at + count], "big")
        at += count
    if at + length > end:
        raise ValueError(f"not a certificate: an element at byte {at} ends behind the one that holds it")
    return at, at + length


def elements(data: bytes) -> list[tuple[int, bytes]]:
    """Return the elements that stand one behind the other, each by tag and content; raises ValueError."""
    found, at = [], 0
    while at < len(data):
        start, end = _content(data, at, len(data), data[at])
        found.append((data[at], data[start:end]))
        at = end
    return found
