"""What it means that the SDK does not reach the service: whether another try mends that, or its user."""

import ssl
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mpx.errors import AuthenticationError, ConnectionLost, MpxError, TransferTimeout, UsageError

if TYPE_CHECKING:
    from globus_sdk import NetworkError

_DEEPEST = 10  # of exceptions within exceptions


def of_network(error: "NetworkError", what: str, safe: Callable[[str], str]) -> MpxError:
    """Return the error; `what` could not be done, `safe` returns a text as users may see it.

    A server that is not there, or refuses the connection, may be started anew meanwhile, as elsewhere.
    """
    from globus_sdk import GlobusTimeoutError
    from requests import exceptions

    cause = error.underlying_exception
    if isinstance(error, GlobusTimeoutError):
        return TransferTimeout(f"Globus does not answer: cannot {what}; --timeout waits longer")
    if why := _of_certificate(cause):
        return AuthenticationError(
            f"cannot {what}: the certificate of Globus is not valid: {safe(why)}; where your site has a "
            "proxy with a certificate of its own, name the file of its authority in GLOBUS_SDK_VERIFY_SSL"
        )
    of_settings = exceptions.InvalidURL, exceptions.InvalidSchema, exceptions.MissingSchema
    if isinstance(cause, of_settings):
        return UsageError(
            f"cannot {what}: {safe(str(cause))}; look at the GLOBUS_SDK_SERVICE_URL_... and proxies "
            "that are set"
        )
    return ConnectionLost(f"cannot reach Globus to {what}: {safe(_plainly(cause))}")


def _plainly(error: BaseException) -> str:
    """Return which host is not reached, and why; in the words of the library where they are all there is."""
    from requests import exceptions

    asked = getattr(error, "request", None)
    host = urlsplit(asked.url).netloc.rpartition("@")[2] if asked is not None and asked.url else ""
    reasons = [each.strerror for each in _causes(error) if isinstance(each, OSError) and each.strerror]
    if not (host and reasons):
        return str(error)
    before = "the proxy that is set for " if isinstance(error, exceptions.ProxyError) else ""
    return f"{before}{host}: {reasons[-1]}"


def _of_certificate(error: BaseException | None) -> str:
    """Return what is wrong with a certificate; empty where that is not what it is due to."""
    found = (each for each in _causes(error) if isinstance(each, ssl.SSLCertVerificationError))
    return next((each.verify_message for each in found), "")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, and what it is due to."""
    for _ in range(_DEEPEST):
        if error is None:
            return
        yield error
        within = [getattr(error, "reason", None), *error.args, error.__cause__, error.__context__]
        error = next((each for each in within if isinstance(each, BaseException)), None)
