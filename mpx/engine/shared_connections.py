"""What all connections of a copy with one server share, beside the pool of its FTP sessions."""

from typing import Protocol


class SharedConnections(Protocol):
    """Made once for a server, and handed to its endpoints and carriers. For any thread."""

    @property
    def takes_turns(self) -> bool:
        """Whether the server admits fewer sessions than there is work for."""
        ...

    @property
    def server_url(self) -> str:
        """The server, where locations do not name it (S3), and options and settings do; else empty."""
        ...

    def close(self) -> None:
        """Close what nobody uses any more; closing twice is fine."""
        ...
