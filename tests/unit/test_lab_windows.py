"""How a host is made to keep a window."""

import pytest
from mpx_lab.plan import HOST_SETTINGS, UNSCALED_WINDOW_BYTES, window_settings

BUFFERS, TUNING = "net/ipv4/tcp_rmem", "net/ipv4/tcp_moderate_rcvbuf"


@pytest.mark.parametrize("window_bytes", [None, UNSCALED_WINDOW_BYTES])
def test_where_the_route_is_enough_the_kernel_tunes_buffers_as_at_first(window_bytes: int | None) -> None:
    settings = dict(window_settings(window_bytes))
    assert settings == {TUNING: "1", BUFFERS: dict(HOST_SETTINGS)[BUFFERS]}


@pytest.mark.parametrize("window_bytes", [1, 13_000, 65534, 65536, 1 << 30])
def test_for_any_other_window_buffers_are_fixed_and_hold_it(window_bytes: int) -> None:
    settings = dict(window_settings(window_bytes))
    assert settings.pop(TUNING) == "0"
    least, default, most = map(int, settings.pop(BUFFERS).split())
    assert least <= 4096
    assert window_bytes < default == most < 2 * window_bytes + 2
    assert settings == {}
