"""Identifies callers by token or address, and limits their requests."""

import hmac
import ipaddress

from mpx.engine.token_bucket import TokenBucket
from mpx.errors import UsageError
from mpx_controller.config import LOCAL, Api
from mpx_controller.controller import Caller
from mpx_controller.errors import NotYours, Refused, TooMany
from mpx_controller.networks import Networks

BEARER = "bearer"
BURST_S = 2.0  # a caller may ask for so many seconds' worth at once
MOST_CALLERS = 10_000


class UnknownToken(Refused):
    """No token, or an unknown one."""

    status = 401


class Callers:
    """Knows callers by their tokens and addresses. Raises UsageError where a token cannot be read."""

    def __init__(self, config: Api) -> None:
        self._config = config
        self.refused = 0  # requests that were too many
        self._tokens: list[tuple[bytes, str, Networks | None]] = []
        self._budgets: dict[str, TokenBucket] = {}
        for token in config.tokens:
            try:
                secret = token.file.read_text().strip().encode()
            except (OSError, UnicodeDecodeError) as error:
                why = getattr(error, "strerror", None) or error
                raise UsageError(f"the token of {token.owner}, {token.file}, cannot be read: {why}") from None
            if len(secret) < 16:
                raise UsageError(
                    f"the token in {token.file} has less than 16 characters, so it could be guessed"
                )
            self._tokens.append((secret, token.owner, Networks(token.networks) if token.networks else None))

    def caller(self, address: str, authorization: str | None) -> Caller:
        """Return the caller with an address or a token; raises UnknownToken or NotYours."""
        if authorization is not None:
            scheme, _, token = authorization.partition(" ")
            return self._by_token(token.strip().encode() if scheme.lower() == BEARER else b"", address)
        if ipaddress.ip_address(address).is_loopback:
            return Caller(LOCAL, lambda _: True)
        if self._config.insecure and Networks(self._config.allow_from)(address):
            return Caller(address, address.__eq__)
        if self._config.insecure:
            raise NotYours(f"{address} is not among the addresses of api.allow_from")
        raise UnknownToken("give a token: 'Authorization: Bearer TOKEN'")

    def spend(self, address: str, now_s: float) -> None:
        """Count a request; raises TooMany where there are too many."""
        rate = self._config.requests_per_s
        if len(self._budgets) > MOST_CALLERS:
            self._budgets.clear()
        budget = self._budgets.setdefault(address, TokenBucket(rate, max(1.0, rate * BURST_S)))
        if not budget.take(now_s):
            self.refused += 1
            raise TooMany(f"more than {rate:g} requests a second from {address}; send fewer")

    def _by_token(self, secret: bytes, address: str) -> Caller:
        found = None
        for known, owner, networks in self._tokens:  # all of them, so that the time shows nothing
            if hmac.compare_digest(known, secret):
                found = Caller(owner, networks or address.__eq__)
        if found is None:
            raise UnknownToken("unknown token")
        return found
