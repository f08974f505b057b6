"""Turns: few work at a time, who uses little comes first, and nobody waits for ever."""

import threading
import time

from hypothesis import given
from hypothesis import strategies as st

from mpx.serve.turns import LINES_OF_A_TURN, Grant, Share, Turn, Turns, in_turns

FOREVER_S = 30.0


def test_no_more_than_that_work_at_a_time():
    turns, lock = Turns(at_once=2), threading.Lock()
    now, most = 0, 0

    def work() -> None:
        nonlocal now, most
        turn = Turn(turns, Share())
        for _ in range(200):
            turn.take(FOREVER_S)
            with lock:
                now += 1
                most = max(most, now)
            with lock:
                now -= 1
            turn.end()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert now == 0
    assert 1 <= most <= 2


def test_who_used_little_comes_first(eventually):
    turns = Turns(at_once=1)
    busy, modest = Share(), Share()
    busy.add(10.0, time.monotonic())
    order: list[str] = []
    first = Turn(turns, Share())
    first.take()

    def work(name: str, share: Share) -> None:
        turn = Turn(turns, share)
        turn.take(FOREVER_S)
        order.append(name)
        turn.end()

    threads = []
    for number, (name, share) in enumerate((("busy", busy), ("modest", modest))):
        thread = threading.Thread(target=work, args=(name, share))
        thread.start()
        threads.append(thread)
        eventually(lambda number=number: len(turns._waiting) > number)
    first.end()
    for thread in threads:
        thread.join()
    assert order == ["modest", "busy"]


def test_patience_ends_and_takes_no_turn_of_others():
    turns = Turns(at_once=1)
    hangs, other = Turn(turns, Share()), Turn(turns, Share())
    hangs.take()
    with other:  # without a turn
        pass
    hangs.end()
    assert turns.take(Share(), 0.01) is not Grant.NONE
    assert turns.take(Share(), 0.01) is Grant.NONE


def modest_and_busy() -> tuple[Share, Share]:
    """Return the shares of a client that has used little for long, and of one that just used much."""
    modest, busy = Share(), Share()
    modest._at_s -= 1000
    busy.add(10.0, time.monotonic())
    return modest, busy


def test_one_turn_is_kept_for_clients_that_use_little_while_there_are_any():
    now_s = time.monotonic()
    turns = Turns(at_once=2, clock=lambda: now_s)
    modest, busy = modest_and_busy()
    turns.end(modest, 0.0, turns.take(modest, 0.0))
    assert turns.take(busy, 0.0) is Grant.BUSY
    assert turns.take(busy, 0.0) is Grant.NONE
    had = turns.take(modest, 0.0)
    assert had is Grant.MODEST
    turns.end(modest, 0.0, had)
    now_s += 2.0
    assert turns.take(busy, 0.0) is Grant.BUSY  # nobody else has asked for long


def test_a_queue_that_moves_is_waited_for_and_a_file_system_that_hangs_is_not(eventually):
    now_s, asked = time.monotonic(), 0

    def clock() -> float:
        nonlocal asked
        asked += 1
        return now_s

    turns = Turns(at_once=1, clock=clock)
    _, busy = modest_and_busy()
    turns.end(busy, 0.0, turns.take(busy, 0.0))  # a turn ends just now
    turns.take(busy, 0.0)
    grants: list[Grant] = []
    waits = threading.Thread(target=lambda: grants.append(turns.take(busy, 0.001)))
    waits.start()
    eventually(lambda: asked > 10)
    with turns._lock:
        now_s += 0.5  # more than its patience ...
        turns._ended_s = now_s  # ... but somebody else's turn has ended just now
    looked = asked
    eventually(lambda: asked > looked + 10)
    assert not grants
    now_s += 1.0  # in which none ended
    waits.join()
    assert grants == [Grant.NONE]


@given(st.lists(st.floats(0, 1), max_size=20), st.floats(0, 100))
def test_a_share_falls_with_time_and_a_pause_forgets_what_was_done_in_one_go(used, later_s):
    now_s = time.monotonic()
    share = Share()
    for seconds in used:
        now_s += 1.0
        share.add(seconds, now_s)
    assert 0 <= share.used_s(now_s + later_s) <= share.used_s(now_s) <= sum(used) + 0.11
    before = share.rank(now_s)
    share.pause()
    assert share.rank(now_s) <= before
    assert share.rank(now_s + 1000) == 0


@given(st.integers(0, 5 * LINES_OF_A_TURN))
def test_lines_are_made_in_turns_and_none_is_lost(count):
    turns = Turns(at_once=1)
    turn = Turn(turns, Share())
    made = []
    for some in in_turns(turn, range(count)):
        assert turns.take(Share(), 0.0) is Grant.BUSY  # nobody holds one while they are sent
        turns.end(Share(), 0.0, Grant.BUSY)
        made += some
    assert made == list(range(count))
