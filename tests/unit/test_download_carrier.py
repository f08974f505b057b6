"""Downloads in MODE E: how many sessions there are, and which of them may change their connections."""

from dataclasses import replace

import pytest
from unit.made_up_context import a_context

from mpx.endpoints.ftp.mode_e.carriers import DownloadCarrier
from mpx.endpoints.ftp.session import SessionOptions
from mpx.engine.carrier import StreamSettings
from mpx.location import parse_location

WHERE = parse_location("ftp://127.0.0.1:1/")


def carrier(**options: object) -> DownloadCarrier:
    return DownloadCarrier(WHERE, SessionOptions(), a_context(**options))


@pytest.mark.parametrize(
    ("options", "sessions"),
    [({}, 8), ({"streams": 16}, 8), ({"max_sessions": 3}, 3), ({"tuner": "paper"}, 1)],
)
def test_streams_are_spread_over_sessions_but_for_chunks_that_all_share(
    options: dict[str, object], sessions: int
) -> None:
    moving = carrier(**options)
    moving.set_streams("default", 16)
    shares = [worker.target for worker in moving._downloads]
    assert len(shares) == sessions and sum(shares) == 16 and max(shares) - min(shares) <= 1


def test_a_short_copy_is_one_session() -> None:
    moving = DownloadCarrier(
        WHERE, SessionOptions(), replace(a_context(), streams=StreamSettings(is_short=True))
    )
    moving.set_streams("default", 16)
    assert [worker.target for worker in moving._downloads] == [16, *[0] * 7]


def test_no_session_is_left_for_another_once_a_server_has_refused_one() -> None:
    moving = carrier()
    moving.set_streams("default", 8)
    assert moving._may_switch(True) and moving._may_switch(False)
    moving._downloads[-1].gone = True
    assert not moving._may_switch(True)
    assert moving._may_switch(False)
    for worker in moving._downloads[:4]:
        worker._is_between = True
    assert not moving._may_switch(False)  # as many as may at a time do so already
