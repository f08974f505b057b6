"""How much somebody may do: a bucket that fills at a rate, and from which each deed takes."""

from dataclasses import dataclass


@dataclass
class Budget:
    """`rate` deeds a second, and `burst` at once."""

    rate: float
    burst: float
    _spent: float = 0.0
    _at_s: float = 0.0

    def spend(self, now_s: float) -> bool:
        """Take one; return False, and take none, where none is left."""
        self._spent = max(0.0, self._spent - self.rate * (now_s - self._at_s))
        self._at_s = now_s
        if self._spent + 1 > self.burst:
            return False
        self._spent += 1
        return True
