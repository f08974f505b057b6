"""What is probed, as the user writes it: a URL, or HOST[:PORT]."""

import ipaddress
import re

from mpx.endpoints.schemes import capabilities_of
from mpx.errors import UsageError
from mpx.location import FTP_PORT, WITH_HOSTS, Location, parse_location
from mpx.net.tcp import Address, show

_HOST_AND_PORT = re.compile(r"(?:\[([^\[\]]+)\]|([^:/?#\[\]\s@]+))(?::([0-9]{1,5}))?", re.ASCII)
_SCHEME = re.compile(rf"({'|'.join(WITH_HOSTS)})://", re.IGNORECASE)
_S3 = re.compile("s3://", re.IGNORECASE)
_GLOBUS = re.compile("globus://", re.IGNORECASE)
_SSH_PORT = 22


def parse_target(text: str, region: str | None = None, endpoint_url: str | None = None) -> Address:
    """Return host (a name or an address) and TCP port; raises UsageError.

    Probes need no login but with mpx://, so gsiftp:// counts as ftp://. `region` and `endpoint_url` say where
    a bucket of S3 is, as the AWS tools find it without.
    """
    if _S3.match(text):
        return _of_bucket(parse_location(text), region, endpoint_url)
    if region is not None or endpoint_url is not None:
        given = "--endpoint-url" if region is None else "--region"
        raise UsageError(f"{given} is for s3://; {text!r} names its host itself")
    if _GLOBUS.match(text):
        raise UsageError(
            f"{text!r} cannot be probed: Globus moves the data between collections; for copies by the HTTPS "
            "of a collection write https://HOST/ of that, as app.globus.org shows it"
        )
    if found := _SCHEME.match(text):
        location = parse_location(text)
        if capabilities_of(location).through_ssh:
            place = show((location.host, location.port or _SSH_PORT))
            raise UsageError(
                f"{text!r}: probes do not go through ssh; write {place}, or host and port as your settings "
                "of ssh have them, and handshakes with its sshd are timed"
            )
        return _reachable(location.host), location.port
    if _ipv6(text):
        return _reachable(text), FTP_PORT
    found = _HOST_AND_PORT.fullmatch(text)
    port = int(found.group(3) or FTP_PORT) if found else 0
    if found and not 0 < port < 65536:
        raise UsageError(f"{text!r} has no port that can be probed: ports are 1 to 65535")
    if not found or (found.group(1) and not _ipv6(found.group(1))):
        raise UsageError(
            f"{text!r} is not a probe target; write https://HOST[:PORT]/ (or davs://, s3://, gsiftp://, "
            "ftp://, mpx://), HOST or HOST:PORT, an IPv6 address with a port as [2001:db8::7]:2811"
        )
    return _reachable(found.group(1) or found.group(2)), port


def location_of(text: str) -> Location:
    """Return where one logs in, and where bursts go, which `parse_target` has accepted."""
    if _SCHEME.match(text) or _S3.match(text):
        return parse_location(text)
    host, port = parse_target(text)
    return Location("ftp", "/", host, port)


def _of_bucket(bucket: Location, region: str | None, endpoint_url: str | None) -> Address:
    """Return the server that has a bucket; handshakes need no credentials."""
    from mpx.endpoints.s3.access import S3Access  # which needs botocore
    from mpx.endpoints.s3.options import S3Options
    from mpx.endpoints.web.options import WebOptions

    options = S3Options(region=region, endpoint_url=endpoint_url, signs=False)
    origin = S3Access(bucket, WebOptions(), options).origin
    return _reachable(origin.host), origin.port


def _reachable(host: str) -> str:
    """Return a host, an IPv4-mapped address as IPv4; raises UsageError for link-local ones."""
    address = _ipv6(host.partition("%")[0])
    if address and ("%" in host or address.is_link_local):
        raise UsageError(
            f"{host} is a link-local address, for which no interface can be given here; "
            "write the host's IPv4 address or an IPv6 one that does not begin with fe80"
        )
    return str(address.ipv4_mapped) if address and address.ipv4_mapped else host


def _ipv6(text: str) -> ipaddress.IPv6Address | None:
    try:
        return ipaddress.IPv6Address(text)
    except ValueError:
        return None
