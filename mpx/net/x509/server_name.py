"""Whether a certificate is one of the host that was asked for. No name server is asked: it may lie. Pure."""

import ipaddress
import re

from cryptography import x509

# Before the host, in names of older certificates.
_SERVICE = re.compile(r"\A(?:host|ftp|gsiftp)/", re.IGNORECASE)


def names_of(certificate: x509.Certificate) -> list[str]:
    """Return the hosts that a certificate is for: its alternative names, else its common name."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        names: list[str] = []
    else:
        names = [*found.get_values_for_type(x509.DNSName)]
        names += map(str, found.get_values_for_type(x509.IPAddress))
    if names:
        return names
    common = certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    return [_SERVICE.sub("", str(each.value), count=1) for each in common[-1:]]


def is_for(certificate: x509.Certificate, host: str) -> bool:
    """Tell whether a certificate is one of a host, by name or address (RFC 6125: * is one whole label)."""
    return any(_is_same(name, host) for name in names_of(certificate))


def _is_same(name: str, host: str) -> bool:
    name, host = name.lower().rstrip("."), host.lower().rstrip(".")
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        first, dot, rest = name.partition(".")
        if first == "*" and dot and "." in rest:
            label, _, domain = host.partition(".")
            return bool(label) and domain == rest
        return name == host
    try:
        return ipaddress.ip_address(name) == address
    except ValueError:
        return False
