"""The ways in which servers are asked for checksums, and what their replies mean. Pure.

CKSM of GridFTP, which dCache offers as CKSUM; HASH of draft-bryan-ftpext-hash; XCRC, XMD5, XSHA and their
kin, and MD5 of draft-twine-ftpmd5, as FTP servers have them. Only CKSM knows parts of files, and that of
dCache does not: ProFTPD ignores RANG before HASH.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mpx.endpoints.ftp.extensions.xxh3 import XXH3
from mpx.endpoints.ftp.wire import command
from mpx.engine.checksum import DIGITS
from mpx.engine.endpoint import Part

_SPELLED = {
    "xxh3": XXH3,
    "sha256": "SHA256",
    "sha512": "SHA512",
    "sha1": "SHA1",
    "md5": "MD5",
    "crc32": "CRC32",
    "adler32": "ADLER32",
}
_ALGORITHMS = {"mpxxxh3": "xxh3", "sha": "sha1", **{name: name for name in DIGITS if name != "xxh3"}}
_WHOLE_FILE_COMMANDS = {
    "XSHA256": "sha256",
    "XSHA512": "sha512",
    "XSHA1": "sha1",
    "XSHA": "sha1",
    "XMD5": "md5",
    "MD5": "md5",
    "XCRC": "crc32",
    "XCRC32": "crc32",
}
_HEX = re.compile("[0-9a-fA-F]+")
_ZEROS = 4  # that may be missing at the front of a digest; five are missing in one of a million


@dataclass(frozen=True, slots=True)
class Form:
    """One way to ask a server for a checksum."""

    verb: str
    algorithm: str
    spelled: str = ""  # the algorithm, as the server writes it
    takes_parts: bool = False

    def fits(self, part: Part) -> bool:
        """Tell whether this form can be asked for a part."""
        return self.takes_parts or part.is_whole

    def question(self, part: Part) -> bytes:
        """Return the command that asks for the checksum of a part."""
        if self.verb == "CKSM":
            start, length = (part.start, part.end - part.start) if self.takes_parts else (0, -1)
            return command("CKSM", self.spelled, start, length, part.name)
        is_quoted = self.verb.startswith("X") and re.search(r"\s", part.name)
        return command(self.verb, f'"{part.name}"' if is_quoted else part.name)


def forms(features: Mapping[str, str], algorithm: str) -> list[Form]:
    """Return the ways in which a server with these features may be asked for a checksum, the best first."""
    found: list[Form] = []
    in_cksm, in_hash, in_cksum = (
        _spelled(features.get(verb), algorithm) for verb in ("CKSM", "HASH", "CKSUM")
    )
    if in_cksm:
        found.append(Form("CKSM", algorithm, in_cksm, takes_parts=True))
    if in_hash:
        found.append(Form("HASH", algorithm, in_hash))
    if whole := in_cksm or in_cksum:
        found.append(Form("CKSM", algorithm, whole))
    verbs = [verb for verb, its in _WHOLE_FILE_COMMANDS.items() if its == algorithm and verb in features]
    return found + [Form(verb, algorithm) for verb in verbs]


def _spelled(offer: str | None, algorithm: str) -> str:
    """Return how an offer (`MD5:10;SHA-256*;`) writes an algorithm, empty if it is not offered.

    One that names none may mean any, but those of our own.
    """
    if offer is None:
        return ""
    names = re.findall(r"[A-Za-z0-9_-]+", re.sub(r":\s*\d+", "", offer))
    if not names:
        return _SPELLED[algorithm] if algorithm != "xxh3" else ""
    return next((name for name in names if _algorithm(name) == algorithm), "")


def _algorithm(name: str) -> str | None:
    return _ALGORITHMS.get(re.sub("[-_]", "", name).lower())


def digest_in(lines: Sequence[str], algorithm: str, part: Part) -> str | None:
    """Return the digest that a reply states, in lower case; None where none can be told for certain.

    Servers write it alone, after or before the name of the file, with the algorithm and the range of bytes;
    in either case, without leading zeros, with 0x; on the last line or before it. checksum.is_same compares.
    """
    for line in reversed(lines):
        if found := _digest_in_line(line, algorithm, part):
            return found.lower()
    return None


def _digest_in_line(line: str, algorithm: str, part: Part) -> str | None:
    if len(line) == DIGITS[algorithm] and _HEX.fullmatch(line):
        return line  # as nearly all servers write it
    words = [word for word in re.split(r"[\s:=,;()\"'*]+", _without_name(line.strip(), part.name)) if word]
    named = {_algorithm(word) for word in words} - {None}
    if named - {algorithm}:
        return None  # another one than we asked for
    words = [word for word in words if not _algorithm(word)]
    ranges = [word for word in words if re.fullmatch(r"[0-9]{1,19}-[0-9]{1,19}", word)]
    if not all(_is_range(word, part) for word in ranges):
        return None
    rest = [re.sub("^0[xX]", "", word) for word in words if word not in ranges]
    digits = DIGITS[algorithm]
    whole = {word.lower() for word in rest if re.fullmatch(f"[0-9a-fA-F]{{{digits}}}", word)}
    if len(whole) == 1:
        return next(iter(whole))
    if len(rest) != 1 or whole:
        return None
    if re.fullmatch(f"[0-9a-fA-F]{{{digits - _ZEROS},{digits}}}", rest[0]):
        return rest[0].zfill(digits)
    is_decimal = digits == 8 and re.fullmatch("[0-9]{9,10}", rest[0])
    return rest[0] if is_decimal else None


def _without_name(text: str, name: str) -> str:
    """Return a line without the name of the file at its start or end."""
    base = name.rsplit("/", 1)[-1]
    for shown in (f'"{name}"', f"({name})", name, f'"{base}"', f"({base})", base):
        if not shown:
            continue
        if text.endswith(" " + shown):
            return text[: -len(shown)]
        for separator in (" ", ":"):
            if text.startswith(shown + separator):
                return text[len(shown) :]
    found = re.match(r"[A-Za-z0-9-]{1,20} \(", text)  # MD5 (name) = digest
    if found and (after := text.find(f"({name})")) >= 0:
        return text[:after] + text[after + len(name) + 2 :]
    return text


def _is_range(word: str, part: Part) -> bool:
    """Tell whether first-last, or first-end, is what was asked for."""
    first, last = map(int, word.split("-"))
    return first == part.start and last in (part.end, part.end - 1)
