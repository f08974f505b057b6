"""Token bucket: how often something may be done."""

from dataclasses import dataclass


@dataclass
class TokenBucket:
    """`rate` tokens a second, and `burst` at once. One thread uses it; times are in seconds."""

    rate: float
    burst: float
    _spent: float = 0.0
    _at_s: float = 0.0

    def take(self, now_s: float) -> bool:
        """Take a token; return False, and take none, where none is left."""
        self._spent = max(0.0, self._spent - self.rate * (now_s - self._at_s))
        self._at_s = now_s
        if self._spent + 1 > self.burst:
            return False
        self._spent += 1
        return True
