"""How many bytes of files a server says it has stored: an upload is not whole because it was acknowledged."""

import contextlib
from collections.abc import Mapping, Sequence

from mpx.endpoints.ftp import wire
from mpx.endpoints.ftp.extensions import sink
from mpx.endpoints.ftp.session import ClientSession
from mpx.endpoints.ftp.sizes import size_of
from mpx.endpoints.ftp.wire import Reply, command
from mpx.engine.whole_number import read_size


def stores_faithfully(features: Mapping[str, str]) -> bool:
    """Tell from FEAT whether a server is known to do what it acknowledges: a Globus server, or mpx serve."""
    return "DSI" in features or sink.FEATURE in features


def stored_sizes(session: ClientSession, names: Sequence[str]) -> list[int | None]:
    """Return the sizes of absolute names by SIZE, else by MLST; None where the server tells neither.

    Asked in binary mode, which a session is in from its login. Raises ConnectionLost, TransferTimeout.
    """
    sizes = [size_of(reply) for reply in session.pipeline([command("SIZE", name) for name in names])]
    unknown = [i for i, size in enumerate(sizes) if size is None]
    if unknown and "MLST" in session.features:
        replies = session.pipeline([command("MLST", names[i]) for i in unknown])
        for i, reply in zip(unknown, replies, strict=True):
            sizes[i] = stated_size(reply)
    return sizes


def stated_size(reply: Reply) -> int | None:
    """Read the size in an answer to SIZE or MLST; None where it tells none."""
    if (size_bytes := size_of(reply)) is not None:
        return size_bytes
    for line in wire.lines_of_facts(reply):
        with contextlib.suppress(ValueError):
            return read_size(wire.parse_facts(line, is_indented=True).facts.get("size", ""))
    return None
