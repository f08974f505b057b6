"""What lets one server in at another one for us, as it is handed over."""

import enum
from dataclasses import dataclass, field


class Means(enum.Enum):
    """What is handed over."""

    MACAROON = enum.auto()  # made by the other server for this: good for one file, for an hour
    TOKEN = enum.auto()  # the user's
    NOTHING = enum.auto()  # there is nothing that could be


@dataclass(frozen=True, slots=True)
class Handed:
    """It, with the secret that repr() does not show."""

    means: Means
    secret: str = field(default="", repr=False)

    @property
    def authorization(self) -> str:
        """The value of the header Authorization."""
        return f"Bearer {self.secret}"
