"""What counts of retrieves that are not complete when their session ends, and whether it may end. Pure."""

from collections.abc import Iterable, Iterator, Sequence

from mpx.endpoints.ftp.mode_e.retrieve import PartialRetrieve


def certain(retrieves: Iterable[PartialRetrieve], proven_to: int) -> Iterator[PartialRetrieve]:
    """Yield those of which what came is theirs, and from where they begin.

    `proven_to`: as far as the server has shown that it begins where it is asked to. Ends at a retrieve that
    it has neither begun nor confirmed: it may refuse that one, and then what came for it belongs to the next.
    """
    for retrieve in retrieves:
        if not (retrieve.begun or retrieve.replied):
            return
        is_proven = retrieve.start <= proven_to and not retrieve.is_last
        if not retrieve.is_stream and (is_proven or not retrieve.start):
            yield retrieve


def are_in_vain(retrieves: Sequence[PartialRetrieve], proven_to: int) -> bool:
    """Tell whether the server sends only what is here, and nothing would be lost with the session."""
    if any(each.is_stream or each.missing().size for each in retrieves):
        return False
    counts = list(certain(retrieves, proven_to))
    left_bytes = sum(each.left_bytes for each in retrieves)
    return left_bytes > 0 and not any(each.held_bytes for each in retrieves if each not in counts)
