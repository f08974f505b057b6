"""How what passes between us and a server is protected, as a copy needs to know it."""

from mpx.endpoints.ftp.gsi.options import GsiOptions
from mpx.engine.endpoint import Admission, Protection
from mpx.errors import AuthenticationError
from mpx.location import Location

_RENEWAL = "renew it (grid-proxy-init, voms-proxy-init), it is read again"


def protection_of(location: Location, gsi: GsiOptions) -> Protection:
    """Return it for a server: `gsi` counts for gsiftp:// alone, the only one that protects a part."""
    if location.scheme != "gsiftp":
        return Protection()
    from mpx.net.x509.credential import find_credential

    try:
        admission = Admission(find_credential().expires.timestamp(), "your proxy", _RENEWAL)
    except AuthenticationError:
        admission = None  # said where it is needed
    if not gsi.dcau:
        return Protection(
            "listings and file data are not encrypted, nor is it authenticated who sends them", admission
        )
    if not gsi.encrypt:
        return Protection(
            "file data are not encrypted, only who sends them is authenticated (--encrypt)", admission
        )
    return Protection(admission=admission)
