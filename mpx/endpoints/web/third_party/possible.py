"""Whether a web server may be one of two that copy from or to each other, as far as that is known."""

from dataclasses import replace

from mpx.endpoints.web.access import WebAccess
from mpx.endpoints.web.capabilities import HTTP_TPC
from mpx.engine.capabilities import ThirdParty


def third_party_of(access: WebAccess) -> ThirdParty:
    """Return how files of a server get to others, and from there.

    Credentials are handed over inside TLS only, and only those that are made for that. Plain web servers
    would copy something within themselves.
    """
    if not access.origin.is_secure:
        why = f"{access.origin} is not inside TLS, and servers are told to copy there only"
        return replace(HTTP_TPC, why_not=why)
    if access.given.has_queries:
        why = f"a URL at {access.origin.authority} has a query, which may let in whoever has it"
        return replace(HTTP_TPC, why_not=why)
    if access.given.has_slashes:
        why = (
            f"a URL at {access.origin.authority} has an encoded slash, beside which no partial file is stored"
        )
        return replace(HTTP_TPC, why_not=why)
    return replace(HTTP_TPC, is_told=not access.server.is_plain)
