"""The dialogue with the shell that computes checksums at the other end of ssh. Pure.

The script is fixed: names of files come to it over its input. Whole files with usual names are summed by one
program for many, to which they are passed as they are, so many bytes of them: a shell reads byte by byte. A
part, a long file, or one whose name that program would write in another form, has a program of its own
(openssl where it is there, as that is four times as fast; its sum of nothing is checked). Its name comes in a
form that holds nothing but letters, digits and backslashes, which `printf %b` of any shell reads.
"""

import re
import shlex
from collections.abc import Iterable, Mapping

READY, NONE, END = b"mpx-sums ready", b"mpx-sums none", b"mpx-sums end"
LONGEST_LINE_BYTES = 65536

_SCRIPT = r"""
if command -v sha256sum >/dev/null 2>&1 && command -v xargs >/dev/null 2>&1; then
 printf '\nmpx-sums ready\n'
else
 printf '\nmpx-sums none\n'; exit 0
fi
sum=sha256sum
case $(printf '' | openssl dgst -sha256 -r 2>/dev/null) in
 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855*) sum='openssl dgst -sha256 -r' ;;
esac
while IFS=' ' read -r how first size name; do
 case $how in
 w) head -c "$first" | xargs -0 sha256sum -- 2>/dev/null
  printf 'mpx-sums end\n' ;;
 p) file=$(printf '%b.' "$name"); file=${file%.}
  if [ -f "$file" ] && [ -r "$file" ]; then
   tail -c "+$((first+1))" <"$file" 2>/dev/null | head -c "$size" | $sum
  else
   printf 'none\n'
  fi ;;
 esac
done
"""
_ODD = re.compile(rb"[^A-Za-z0-9/]")
_LINE = re.compile(rb"([0-9a-f]{64}) [ *](.*)", re.DOTALL)


def command() -> str:
    """Return the remote command, for whichever shell the account has."""
    return f"exec sh -c {shlex.quote(_SCRIPT.strip())}"


def is_usual(name: bytes) -> bool:
    """Tell whether `sha256sum` writes a name as it is."""
    return b"\\" not in name and b"\n" not in name and b"\r" not in name


def path(name: bytes) -> bytes:
    """Return a name so that no program takes it for an option, or for its standard input."""
    return name if name.startswith(b"/") else b"./" + name


def escaped(name: bytes) -> bytes:
    r"""Return a name as `printf %b` reads it: what is no letter, digit or slash as \0NNN (octal)."""
    return _ODD.sub(lambda found: b"\\0%03o" % found[0][0], path(name))


def whole_request(names: Iterable[bytes]) -> bytes:
    """Return the request for the sums of whole files with usual names."""
    sent = b"".join(b"%b\0" % path(name) for name in names)
    return b"w %d\n%b" % (len(sent), sent)


def part_request(name: bytes, start: int, end: int) -> bytes:
    """Return the request for the sum of a part of a file."""
    return b"p %d %d %b\n" % (start, end - start, escaped(name))


def parse_whole(lines: Iterable[bytes]) -> Mapping[bytes, str]:
    """Return the sums by the names as `path` has them; what makes no sense is left out."""
    found = {}
    for line in lines:
        if matched := _LINE.fullmatch(line):
            found[matched.group(2)] = matched.group(1).decode("ascii")
    return found


def parse_part(line: bytes) -> str | None:
    """Return the sum of a part; None where there is none."""
    matched = _LINE.fullmatch(line)
    return matched.group(1).decode("ascii") if matched else None
