"""The order in which a worker asks servers for what it fetches: only that tells their answers apart."""

from collections.abc import Sequence

from mpx.endpoints.web.fetch import WebFetch
from mpx.endpoints.web.lanes import LaneSet
from mpx.endpoints.web.pipelining import Pipelining


def beside(fetch: WebFetch, fetches: Sequence[WebFetch]) -> list[WebFetch]:
    """Return what else the server of a fetch was asked for, or is to be."""
    return [each for each in fetches if each is not fetch and each.at.origin == fetch.at.origin]


def ask_when_due(fetches: Sequence[WebFetch], lanes: LaneSet, pipelining: Pipelining) -> None:
    """Ask for the last fetch at once where that may be done ahead of others; else its turn has to come.

    Nothing is asked of a server before what was to be asked of it earlier, and nothing ahead where that would
    take one connection more than are kept. Raises as LaneSet.ask.
    """
    fetch = fetches[-1]
    before = beside(fetch, fetches)
    fetch.is_sent, fetch.is_ahead = False, bool(before)
    may_follow = pipelining.is_possible(fetch.at.origin) and all(each.is_sent for each in before)
    if fetch is fetches[0] or ((may_follow or not before) and lanes.has_room(fetch.at.origin)):
        lanes.ask(fetch)


def ask_anew(fetches: Sequence[WebFetch], lanes: LaneSet, pipelining: Pipelining) -> None:
    """Ask for all that a connection was to answer which has ended; at once where the server can."""
    at_once = len(fetches) if fetches and pipelining.is_possible(fetches[0].at.origin) else 1
    for i, each in enumerate(fetches):
        each.is_sent, each.is_ahead = False, i > 0
        if i < at_once:
            lanes.ask(each)
