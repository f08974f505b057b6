"""Which paths of a copy are lost, and when they are there again. Pure.

A controller sees a carrier go, but not soon that a link has begun to lose everything; whoever moves data
over it does, within some tenths of a second.
"""

from collections.abc import Mapping
from dataclasses import dataclass

DOUBT_S = 0.1  # silent for so long a path may have been lost: it is asked, ...
SUSPECT_S = 0.25  # ... and the controller, too; less is no loss
UNANSWERED_S = 0.1  # it has not answered by then, ...
LATE_S = 0.05  # ... nor by then and so many RTTs: on long paths before TCP's first timeout
LATE_RTTS = 1.25
LOST_S = 0.35  # and two round trips, where nobody can be asked: less than two timeouts of TCP
TIMES = 2.0  # as long as it was last silent of itself, where that is longer: hosts and disks have pauses
AT_ONCE_S = 0.5  # who answers within so long of being lost was late, and is waited for longer
FORGOTTEN_S = 30.0  # a pause counts half as much after so long
LONGEST_S = 3.0
MOVES_S = 0.1  # who has had something within so long moves: a pause of all is none of one
ALL_ASKED_S = 1.0  # where nobody moves all are asked for so long, and who alone answers not is lost
FIRST_REST_S = 2.0  # a path that is lost again soon is left alone for longer, twice as long each time ...
LONGEST_REST_S = 60.0
STEADY_S = 60.0  # ... until it has been there for so long


@dataclass(frozen=True, slots=True)
class Seen:
    """What is seen of one path. Times are of one clock."""

    silent_s: float | None  # for how long nothing of what is under way has come; None: nothing is
    rtt_s: float
    answered_at_s: float  # when somebody has last answered over the path itself
    unanswered_s: float | None = None  # how old the question over it is that waits for an answer; None: none

    @property
    def late_s(self) -> float:
        """For how long an answer, or what is under way, may take at least."""
        return LATE_S + LATE_RTTS * self.rtt_s

    @property
    def is_unanswered(self) -> bool:
        """Whether what was asked over it should have been answered by now."""
        return (self.unanswered_s or 0.0) > max(UNANSWERED_S, self.late_s)


@dataclass
class _State:
    lost_at_s: float | None = None
    back_at_s: float = -STEADY_S
    rest_s: float = FIRST_REST_S
    silent_s: float = 0.0  # at the last look; when it was lost
    was_late: bool = False  # it was lost for want of an answer, and had moved since it was last back
    paused: tuple[float, float] = (0.0, 0.0)  # when it was last silent and moved again, and for how long
    late: tuple[float, float] = (0.0, 0.0)  # when it was last lost and answered at once, silent for how long

    def heed(self, now_s: float, silent_s: float) -> None:
        """Note a pause that has ended of itself, if it is the longest that counts."""
        if silent_s < self.silent_s and self.silent_s > _faded(self.paused, now_s):
            self.paused = now_s, self.silent_s
        self.silent_s = silent_s

    def patience_s(self, now_s: float, seen: Seen) -> float:
        """Return for how long it may be silent: least where it does not answer, longest where it does."""
        if seen.is_unanswered:
            return min(LONGEST_S, max(SUSPECT_S, seen.late_s, TIMES * _faded(self.late, now_s)))
        if seen.answered_at_s > now_s - (seen.silent_s or 0.0) + seen.rtt_s:
            return LONGEST_S
        return min(LONGEST_S, max(LOST_S + 2 * seen.rtt_s, TIMES * _faded(self.paused, now_s)))

    def is_back(self, now_s: float, answered_at_s: float) -> bool:
        """Whether it can be used again, having been lost. An answer that has come at once was only late."""
        if self.lost_at_s is None or answered_at_s <= self.lost_at_s:
            return False
        if self.was_late and answered_at_s - self.lost_at_s < AT_ONCE_S:
            self.late = now_s, self.silent_s
            self.rest_s, self.was_late = 0.0, False
        return now_s - self.lost_at_s >= self.rest_s


def _faded(pause: tuple[float, float], now_s: float) -> float:
    """Return how long a pause was, less if that was long ago."""
    at_s, pause_s = pause
    return float(pause_s * 0.5 ** ((now_s - at_s) / FORGOTTEN_S))


class PathHealth:
    """Decides for all paths of a copy."""

    def __init__(self) -> None:
        self._states: dict[str, _State] = {}
        self.doubtful: list[str] = []  # to be asked, as one may have been lost at the last look

    @property
    def lost(self) -> frozenset[str]:
        """The paths that are lost now."""
        return frozenset(path for path, state in self._states.items() if state.lost_at_s is not None)

    def observe(self, now_s: float, seen: Mapping[str, Seen]) -> tuple[list[str], list[str]]:
        """Return the paths that are lost from now on, and those that are there again."""
        moves = any(
            each.silent_s is not None and each.silent_s < MOVES_S and path not in self.lost
            for path, each in seen.items()
        )
        lost, back, doubtful = [], [], []
        longest_s = LONGEST_S if moves else ALL_ASKED_S
        for path, each in seen.items():
            state = self._states.setdefault(path, _State())
            silent_s = each.silent_s or 0.0
            if state.lost_at_s is None:
                state.heed(now_s, silent_s)
                others_there = moves or self._others_answer(now_s, path, seen)
                if others_there and silent_s > state.patience_s(now_s, each):
                    state.was_late = each.is_unanswered and now_s - silent_s > state.back_at_s
                    soon = now_s - state.back_at_s < STEADY_S
                    state.rest_s = min(LONGEST_REST_S, max(FIRST_REST_S, 2 * state.rest_s if soon else 0.0))
                    state.lost_at_s = now_s
                    lost.append(path)
                elif DOUBT_S < silent_s < longest_s:
                    doubtful.append(path)
            elif state.is_back(now_s, each.answered_at_s):
                state.lost_at_s, state.back_at_s, state.silent_s = None, now_s, 0.0
                back.append(path)
        ask_all = doubtful and not moves
        self.doubtful = [path for path in seen if path not in self.lost] if ask_all else doubtful
        return lost, back

    def _others_answer(self, now_s: float, path: str, seen: Mapping[str, Seen]) -> bool:
        """Whether somebody has answered over another path what was asked later than over this one.

        An answer counts when it is `LATE_S` old: after a pause of all, answers are read one after the other.
        """
        if not seen[path].is_unanswered:
            return False
        asked_at_s = now_s - (seen[path].unanswered_s or 0.0)
        return any(
            asked_at_s < each.answered_at_s < now_s - LATE_S
            for other, each in seen.items()
            if other != path and other not in self.lost
        )
