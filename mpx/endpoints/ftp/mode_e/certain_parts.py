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
        is_proven = not retrieve.start or retrieve.start <= proven_to
        if is_proven and not retrieve.is_last and not retrieve.is_stream:
            yield retrieve


def are_in_vain(retrieves: Sequence[PartialRetrieve]) -> bool:
    """Tell whether the server still sends, and only what is here."""
    if any(each.is_stream or each.missing().size for each in retrieves):
        return False
    return any(each.left_bytes for each in retrieves)


def lost_bytes(retrieves: Sequence[PartialRetrieve], proven_to: int) -> int:
    """Return how many bytes that came would not count if their session ended now."""
    counts = list(certain(retrieves, proven_to))
    return sum(each.held_bytes for each in retrieves if each not in counts)
