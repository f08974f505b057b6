"""What a user may say of connections with GSI."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GsiOptions:
    """See the options of the same names in mpx/options.py."""

    encrypt: bool = False  # file data, too
    dcau: bool = True  # data connections are authenticated
    delegate: bool = False  # give the server a proxy of ours
    server_subject: str | None = None  # the name of the server's certificate, in place of its host
    data_certificate: str = (
        ""  # PEM, with its key, of data connections between two servers; empty: of each its own
    )
