"""Distinguished names as grid tools write them (/O=Grid/CN=Alice), and the hashes that name files of CAs."""

import hashlib

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm

from mpx.net.der import elements

# What the library raises for certificates, requests and keys that it cannot read.
UNREADABLE = (
    ValueError,
    TypeError,
    x509.InvalidVersion,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
    UnsupportedAlgorithm,
)
_SHORT = {
    "2.5.4.3": "CN",
    "2.5.4.4": "SN",
    "2.5.4.5": "serialNumber",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "street",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "2.5.4.12": "title",
    "2.5.4.42": "GN",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
    "1.2.840.113549.1.9.1": "emailAddress",
}
_OF_OLD = {"/email=": "/emailAddress=", "/e=": "/emailAddress=", "/userid=": "/UID="}  # in files of CAs
_SEQUENCE, _SET, _UTF8 = 0x30, 0x31, 0x0C
_TEXT = {_UTF8: "utf-8", 0x13: "ascii", 0x14: "latin-1", 0x16: "ascii", 0x1A: "ascii"}
_WIDE = {0x1C: "utf-32-be", 0x1E: "utf-16-be"}


def one_line(name: x509.Name) -> str:
    """Return a name as grid-mapfiles and signing policies have it."""
    parts = (attribute for rdn in name.rdns for attribute in rdn)
    return "".join(
        f"/{_SHORT.get(part.oid.dotted_string, part.oid.dotted_string)}={_text(part.value)}" for part in parts
    )


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.hex()


def normalized(text: str) -> str:
    """Return a name, or a pattern of names, with the older words for its parts replaced."""
    lower = text.lower()
    for old, new in _OF_OLD.items():
        while (at := lower.find(old)) >= 0:
            text = text[:at] + new + text[at + len(old) :]
            lower = text.lower()
    return text


def hashes(name: x509.Name) -> tuple[str, str]:
    """Return what OpenSSL calls the subject_hash of a name, and its subject_hash_old (before release 1.0)."""
    whole = name.public_bytes()
    return _as_file(hashlib.sha1(canonical(whole), usedforsecurity=False).digest()), _as_file(
        hashlib.md5(whole, usedforsecurity=False).digest()
    )


def _as_file(digest: bytes) -> str:
    return f"{int.from_bytes(digest[:4], 'little'):08x}"


def canonical(name: bytes) -> bytes:
    """Return what OpenSSL hashes of a name (DER): text in UTF-8, small letters, single spaces.

    As x509_name_canon() of its x_name.c: the parts stand one behind the other, without the outer sequence.
    Raises ValueError for no name.
    """
    found = b""
    ((_, parts),) = elements(name)
    for _, rdn in elements(parts):
        attributes = []
        for _, attribute in elements(rdn):
            (kind, oid), (tag, value) = elements(attribute)
            encoding = _TEXT.get(tag) or _WIDE.get(tag)
            if encoding:
                text = value.decode(encoding).encode("utf-8")
                tag, value = _UTF8, b" ".join(text.split()).lower()
            attributes.append(_element(_SEQUENCE, _element(kind, oid) + _element(tag, value)))
        found += _element(_SET, b"".join(sorted(attributes)))
    return found


def _element(tag: int, content: bytes) -> bytes:
    length = len(content)
    if length < 0x80:
        return bytes((tag, length)) + content
    size = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(size))) + size + content
