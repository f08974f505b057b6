"""What lets us in at a server, as it was sent: the server may repeat it in what people are shown."""

from collections.abc import Mapping

_NAMES = (
    "Authorization",
    "Proxy-Authorization",
    "TransferHeaderAuthorization",
    "X-Amz-Security-Token",
)
_INSTEAD = "[secret]"
_SHORTEST = 6  # a shorter one is none, and stands in many a text by chance


class SentSecrets:
    """Those that went over one connection. Used by its thread."""

    def __init__(self) -> None:
        self._sent: set[str] = set()

    def sent(self, headers: Mapping[str, str]) -> None:
        """Take note of the secrets of a request."""
        for name in _NAMES:
            words = headers.get(name, "").split()
            if words and len(words[-1]) >= _SHORTEST:
                self._sent.add(words[-1])  # without a word before it, as Bearer

    def hidden_in(self, text: str) -> str:
        """Return a text of the server's, for people, without them."""
        for secret in sorted(self._sent, key=len, reverse=True):  # one may be part of another
            text = text.replace(secret, _INSTEAD)
        return text
