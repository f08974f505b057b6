"""Signing policies of CAs (EACL files): which names a CA may vouch for. Pure.

A grid trusts each of its CAs for some names only. Beside the certificate of a CA stands a file like this:

    access_id_CA X509 '/C=CH/O=Grid/CN=CA'
    pos_rights   globus CA:sign
    cond_subjects globus '"/C=CH/O=Grid/*" "/C=CH/O=Other/*"'
"""

import re
from dataclasses import dataclass

from mpx.net.x509.names import normalized

_WORD = re.compile(r"""\s*(?:'([^']*)'|"([^"]*)"|([^\s'"]+))""")
_PATTERN = re.compile(r'"([^"]*)"')


@dataclass(frozen=True, slots=True)
class SigningGrant:
    """What one CA may, or may not, sign: subjects that match one of the patterns."""

    issuer: str
    patterns: tuple[str, ...]
    is_denied: bool = False


def parse_policy(text: str) -> list[SigningGrant]:
    """Read a file; raises ValueError for what it does not understand, as nothing is to be trusted then."""
    grants: list[SigningGrant] = []
    issuers: list[str] = []
    signs: bool | None = None  # granted, denied; None: the rights before are not about signing
    is_new = True
    for number, line in enumerate(text.splitlines(), 1):
        words = _words(line)
        if not words:
            continue
        kind, *rest = words
        if len(rest) != 2:
            raise ValueError(f"line {number}: {kind} needs two words")
        if kind.startswith("access_id_"):
            issuers = [rest[1]] if is_new else [*issuers, rest[1]]
            signs, is_new = None, False
            if kind not in ("access_id_CA", "access_id_ANYBODY"):
                raise ValueError(f"line {number}: {kind} is not known")
            continue
        is_new = True
        if kind in ("pos_rights", "neg_rights"):
            signs = kind == "pos_rights" if rest[1] == "CA:sign" else None
        elif kind == "cond_subjects":
            patterns = tuple(_PATTERN.findall(rest[1])) or (rest[1],)
            if signs is not None:
                grants += [
                    SigningGrant(normalized(each), tuple(map(normalized, patterns)), not signs)
                    for each in issuers
                ]
        else:
            raise ValueError(f"line {number}: {kind} is not known")
    return grants


def _words(line: str) -> list[str]:
    """Return the words of a line, without their quotes; what follows # is a comment."""
    words: list[str] = []
    at = 0
    while at < len(line) and (found := _WORD.match(line, at)):
        single, double, bare = found.groups()
        if bare is not None and bare.startswith("#"):
            return words
        words.append(next(each for each in (single, double, bare) if each is not None))
        at = found.end()
    if line[at:].strip():
        raise ValueError(f"a quote without its end: {line.strip()[:80]!r}")
    return words


def may_sign(grants: list[SigningGrant], issuer: str, subject: str) -> bool:
    """Tell whether a CA may vouch for a name; both as /O=Grid/CN=Name."""
    issuer, subject = normalized(issuer), normalized(subject)
    fitting = [
        grant
        for grant in grants
        if grant.issuer == issuer and any(_fits(each, subject) for each in grant.patterns)
    ]
    return bool(fitting) and not any(grant.is_denied for grant in fitting)


def _fits(pattern: str, name: str) -> bool:
    """Tell whether a name fits a pattern with * for any characters and ? for one.

    In time at most the product of both lengths.
    """
    at = star = kept = 0
    after = -1
    while at < len(name):
        if star < len(pattern) and pattern[star] == "*":
            star += 1
            after, kept = star, at
        elif star < len(pattern) and pattern[star] in ("?", name[at]):
            star, at = star + 1, at + 1
        elif after >= 0:
            kept += 1
            star, at = after, kept
        else:
            return False
    return all(char == "*" for char in pattern[star:])
