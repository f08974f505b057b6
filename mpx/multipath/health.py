"""Which paths of a copy are lost, and when they work again. Pure.

A controller notices a link that goes down, but not soon one that loses all packets; a copy that moves data
over it notices that within some tenths of a second.
"""

from collections.abc import Mapping
from dataclasses import dataclass

DOUBT_S = 0.1  # after so long without data a path is probed, ...
SUSPECT_S = 0.25  # ... and the controller is asked; no path is lost sooner
UNANSWERED_S = 0.1  # a probe is unanswered after so long, ...
LATE_S = 0.05  # ... and after so long plus LATE_RTTS: on long paths this is before the first timeout of TCP
LATE_RTTS = 1.25
LOST_S = 0.35  # plus two RTT, where no probe can be sent: less than two timeouts of TCP
TIMES = 2.0  # multiple of the longest recent pause, where that is longer: hosts and disks pause, too
AT_ONCE_S = 0.5  # a path that answers so soon after it was lost was only late, and gets more patience
FORGOTTEN_S = 30.0  # a pause counts half as much after so long
LONGEST_S = 3.0
MOVES_S = 0.1  # a path moves data if some arrived within so long: a pause of all paths is no loss of one
ALL_ASKED_S = 1.0  # where none moves data all are probed for so long; one that alone is silent is lost
FIRST_REST_S = 2.0  # a path that is lost again soon is not used for longer, twice as long each time ...
LONGEST_REST_S = 60.0
STEADY_S = 60.0  # ... until it has worked for so long


@dataclass(frozen=True, slots=True)
class Seen:
    """What is observed of one path. Times are of one clock."""

    silent_s: float | None  # for how long no data has arrived; None: none is in flight
    rtt_s: float
    answered_at_s: float  # of the last answer to a probe over the path
    unanswered_s: float | None = None  # age of the probe without an answer; None: none

    @property
    def late_s(self) -> float:
        """How long an answer, or data in flight, may take."""
        return LATE_S + LATE_RTTS * self.rtt_s

    @property
    def is_unanswered(self) -> bool:
        """Whether the probe should have been answered by now."""
        return (self.unanswered_s or 0.0) > max(UNANSWERED_S, self.late_s)


@dataclass
class _State:
    lost_at_s: float | None = None
    back_at_s: float = -STEADY_S
    rest_s: float = FIRST_REST_S
    silent_s: float = 0.0  # at the last observation; when it was lost
    was_late: bool = False  # it was lost as a probe was unanswered, after it had moved data
    paused: tuple[float, float] = (0.0, 0.0)  # when a pause last ended, and how long it was
    late: tuple[float, float] = (
        0.0,
        0.0,
    )  # when it last was lost and answered at once; length of the silence

    def note(self, now_s: float, silent_s: float) -> None:
        """Note a pause that has ended, if it is the longest that counts."""
        if silent_s < self.silent_s and self.silent_s > _faded(self.paused, now_s):
            self.paused = now_s, self.silent_s
        self.silent_s = silent_s

    def patience_s(self, now_s: float, seen: Seen) -> float:
        """Return for how long it may be silent: least where a probe is unanswered, most after an answer."""
        if seen.is_unanswered:
            return min(LONGEST_S, max(SUSPECT_S, seen.late_s, TIMES * _faded(self.late, now_s)))
        if seen.answered_at_s > now_s - (seen.silent_s or 0.0) + seen.rtt_s:
            return LONGEST_S
        return min(LONGEST_S, max(LOST_S + 2 * seen.rtt_s, TIMES * _faded(self.paused, now_s)))

    def is_back(self, now_s: float, answered_at_s: float) -> bool:
        """Whether a lost path can be used again. An answer that came at once was only late."""
        if self.lost_at_s is None or answered_at_s <= self.lost_at_s:
            return False
        if self.was_late and answered_at_s - self.lost_at_s < AT_ONCE_S:
            self.late = now_s, self.silent_s
            self.rest_s, self.was_late = 0.0, False
        return now_s - self.lost_at_s >= self.rest_s


def _faded(pause: tuple[float, float], now_s: float) -> float:
    """Return the length of a pause, reduced with its age."""
    at_s, pause_s = pause
    return float(pause_s * 0.5 ** ((now_s - at_s) / FORGOTTEN_S))


class PathHealth:
    """The state of all paths of a copy."""

    def __init__(self) -> None:
        self._states: dict[str, _State] = {}
        self.doubtful: list[str] = []  # to be probed, as they may be lost

    @property
    def lost(self) -> frozenset[str]:
        """The paths that are lost now."""
        return frozenset(path for path, state in self._states.items() if state.lost_at_s is not None)

    def observe(self, now_s: float, seen: Mapping[str, Seen]) -> tuple[list[str], list[str]]:
        """Return the paths that are lost from now on, and those that can be used again."""
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
                state.note(now_s, silent_s)
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
        """Whether a later probe over another path was answered, while that over this one was not.

        An answer counts when it is LATE_S old: after a pause of this host, answers are read one after the
        other.
        """
        if not seen[path].is_unanswered:
            return False
        asked_at_s = now_s - (seen[path].unanswered_s or 0.0)
        return any(
            asked_at_s < each.answered_at_s < now_s - LATE_S
            for other, each in seen.items()
            if other != path and other not in self.lost
        )
