"""Servers that want a certificate of the user, and say so with a page only: nginx answers 400."""

from mpx.endpoints.web.reply import HttpReply
from mpx.endpoints.web.url import Origin
from mpx.errors import AuthenticationError

_PAGE_BYTES = 4096
_NONE_SHOWN, _NOT_TRUSTED = b"No required SSL certificate was sent", b"The SSL certificate error"


def check_certificate(reply: HttpReply, origin: Origin) -> None:
    """Raise AuthenticationError where an answer of status 400 is about our certificate; its page is read."""
    if not origin.is_secure or not reply.header("Content-Type").startswith("text/html"):
        return
    page = reply.read(_PAGE_BYTES)
    if _NONE_SHOWN in page:
        raise AuthenticationError(
            f"{origin} asks for a certificate, and none was shown: give yours with --cert (and --key)"
        )
    if _NOT_TRUSTED in page:
        raise AuthenticationError(
            f"{origin} does not accept the certificate that was shown: give another one with --cert"
        )
