"""Transfers between two servers: noticing that nothing moves, or that no data connection comes about."""

import time

from mpx.errors import ConnectionLost, ThirdPartyRefused, TransferTimeout

LEAST_MARKED_BYTES = 64 * 1024  # for a sign of life: markers are only claims
OBSERVE_EVERY_S = 1.0


class PairWatch:
    """Watches what one pair of sessions has under way; used by one thread."""

    def __init__(self, timeout_s: float, connect_timeout_s: float) -> None:
        self._timeout_s, self._connect_timeout_s = timeout_s, connect_timeout_s
        self._is_observable = True
        self.begin()

    def begin(self) -> None:
        """Let the time of a transfer begin that nothing was under way before."""
        self._heard_s = self._observed_s = time.monotonic()
        self._is_connected = False
        self._marked_bytes = 0

    def connected(self) -> None:
        """Note that there is a data connection."""
        if not self._is_connected:
            self._is_connected, self._heard_s = True, time.monotonic()

    def moved(self, new_bytes: int) -> None:
        """Note how many bytes a marker tells of anew."""
        self._marked_bytes += new_bytes
        if self._marked_bytes >= LEAST_MARKED_BYTES:
            self._marked_bytes, self._heard_s = 0, time.monotonic()

    def ended(self) -> None:
        """Note that a transfer has ended."""
        self._heard_s = time.monotonic()

    @property
    def is_to_be_observed(self) -> bool:
        """Whether it is time to ask how much is stored; True once each time."""
        now_s = time.monotonic()
        if not self._is_observable or now_s < self._observed_s + OBSERVE_EVERY_S:
            return False
        self._observed_s = now_s
        return True

    def cannot_be_observed(self) -> None:
        """Note that nobody tells how much is stored: then only the servers notice a stall."""
        self._is_observable = False

    def look(self, between: str, name: str, *, has_ever_connected: bool) -> None:
        """Raise TransferTimeout where nothing has moved for too long.

        Where no data connection comes about ConnectionLost, or ThirdPartyRefused if none ever did.
        """
        silent_s = time.monotonic() - self._heard_s
        if not self._is_connected and silent_s > self._connect_timeout_s:
            error = ConnectionLost if has_ever_connected else ThirdPartyRefused
            raise error(f"no data connection from {between} within {self._connect_timeout_s:g} s")
        if self._is_connected and self._is_observable and silent_s > self._timeout_s:
            raise TransferTimeout(f"no data from {between} for {self._timeout_s:g} s while sending {name}")
