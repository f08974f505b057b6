"""How what passes between us and a server is protected, as a copy needs to know it."""

from mpx.endpoints.ftp.gsi.options import GsiOptions
from mpx.engine.endpoint import Protection
from mpx.errors import AuthenticationError
from mpx.location import Location


def protection_of(location: Location, gsi: GsiOptions) -> Protection:
    """Return it for a server: `gsi` counts for gsiftp:// alone, the only one that protects a part."""
    if location.scheme != "gsiftp":
        return Protection()
    from mpx.net.x509.credential import find_credential

    try:
        until_s = find_credential().expires.timestamp()
    except AuthenticationError:
        until_s = None  # said where it is needed
    if not gsi.dcau:
        return Protection(
            "listings and file data are not encrypted, nor is it authenticated who sends them", until_s
        )
    if not gsi.encrypt:
        return Protection(
            "file data are not encrypted, only who sends them is authenticated (--encrypt)", until_s
        )
    return Protection(until_s=until_s)
