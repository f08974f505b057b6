"""The end of a MODE E transfer: one EOF, and its total is the number of EODs, whoever came and went."""

import threading

import hypothesis.strategies as st
from hypothesis import given

from mpx.endpoints.ftp.framing import CLOSE, EOD, EOF, BlockHeader
from mpx.endpoints.ftp.mode_e.end_of_data import EndOfData


def test_one_connection() -> None:
    ends = EndOfData()
    assert ends.reserve()
    assert ends.taking_part == 1
    ends.joined()
    assert ends.leave(finished=True, close=False) == BlockHeader(EOD | EOF, 0, 1)
    assert ends.announced
    assert ends.taking_part == 0


def test_nobody_joins_after_the_end() -> None:
    ends = EndOfData()
    ends.enroll()
    ends.leave(finished=True, close=True)
    assert not ends.reserve()


def test_the_last_to_leave_does_not_announce_while_there_is_more_to_send() -> None:
    ends = EndOfData()
    ends.enroll()
    assert ends.leave(finished=False, close=True) == BlockHeader(EOD | CLOSE, 0, 0)
    assert not ends.announced
    assert ends.reserve()
    ends.joined()
    assert ends.leave(finished=True, close=False) == BlockHeader(EOD | EOF, 0, 2)


@given(st.lists(st.sampled_from(["enroll", "reserve", "joined", "refused", "retire"]), max_size=60))
def test_the_total_is_the_number_of_eods(steps: list[str]) -> None:
    ends = EndOfData()
    joining, active, headers = 0, 0, []
    for step in steps:
        if step == "enroll":
            ends.enroll()
            active += 1
        elif step == "reserve":
            assert ends.reserve()
            joining += 1
        elif step == "joined" and joining:
            ends.joined()
            joining, active = joining - 1, active + 1
        elif step == "refused" and joining:
            ends.not_joined()
            joining -= 1
        elif step == "retire" and active:
            headers.append(ends.leave(finished=False, close=True))
            active -= 1
        assert ends.taking_part == joining + active
    for _ in range(joining):
        ends.joined()
    if not joining + active:
        assert ends.reserve()
        ends.joined()
        active = 1
    headers += [ends.leave(finished=True, close=False) for _ in range(joining + active)]
    totals = [header.total_streams for header in headers if header.total_streams is not None]
    assert totals == [len(headers)]
    assert all(header.ends_data for header in headers)


def test_the_last_one_out_waits_for_who_is_just_being_opened(eventually) -> None:
    for joins in (True, False):
        ends = EndOfData()
        ends.enroll()
        assert ends.reserve()
        headers: list[BlockHeader] = []
        last = threading.Thread(
            target=lambda e=ends, h=headers: h.append(e.leave(finished=True, close=False))
        )
        last.start()
        last.join(0.05)
        assert last.is_alive()  # it cannot know the total yet
        if joins:
            ends.joined()
        else:
            ends.not_joined()
        last.join(30)
        assert headers == [BlockHeader(EOD, 0, 0) if joins else BlockHeader(EOD | EOF, 0, 1)]
        if joins:
            assert ends.leave(finished=True, close=False) == BlockHeader(EOD | EOF, 0, 2)
