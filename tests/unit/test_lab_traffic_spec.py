"""Background generators in one line of text: what is understood, what is refused, and that it reads back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpx_lab.traffic.spec import (
    EXAMPLES,
    GENERATORS,
    GridFtp,
    ShortFlows,
    Spec,
    Tcp,
    TcpSquare,
    Udp,
    UdpBursty,
    UdpSquare,
    parse,
    show,
)

from mpx.errors import UsageError


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("tcp", Tcp()),
        ("tcp()", Tcp()),
        (" tcp( congestion=bbr , streams=2 ) ", Tcp("bbr", 2)),
        ("tcp-square(on=5s, off=500ms, congestion=cubic)", TcpSquare("cubic", 1, 5.0, 0.5)),
        ("short-flows(load=0.1, of=200Mbit/s, seed=7)", ShortFlows(0.1, 200e6, seed=7)),
        (
            "short-flows(load=0.1, of=200Mbit/s, smallest=4KiB, largest=1MB)",
            ShortFlows(0.1, 2e8, 4096, 10**6),
        ),
        ("udp(rate=50Mbit/s)", Udp(50e6)),
        ("udp-square(rate=50Mbit/s)", UdpSquare(50e6, 10.0, 10.0)),
        ("udp-bursty(rate=50Mbit/s, burst=1s, period=5s)", UdpBursty(50e6, 5.0, 1.0)),
        ("gridftp(streams=16)", GridFtp(16)),
    ],
)
def test_parsed(text: str, spec: Spec) -> None:
    assert parse(text) == spec


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ftp(streams=2)", "'ftp' is not one of tcp, tcp-square, short-flows, udp, udp-square, udp-bursty"),
        ("", "is not one of"),
        ("tcp(streams=2", "')' is missing"),
        ("tcp(rate=5Mbit/s)", "tcp has no 'rate' (it has congestion, streams)"),
        ("tcp(streams)", "'streams' has no value"),
        ("tcp(streams=2, streams=3)", "'streams' is given twice"),
        ("tcp(streams=two)", "streams: 'two' is not a whole number"),
        ("tcp(streams=0)", "streams must be 1 to 256"),
        ("tcp(congestion=B B R)", "is not the name of a congestion control"),
        ("udp", "udp needs rate"),
        ("udp(rate=50)", "rate: '50' is not a rate: the unit is missing"),
        ("udp-bursty(rate=1Mbit/s, burst=5s, period=5s)", "burst must be above zero and shorter than period"),
        ("udp-square(rate=1Mbit/s, on=0)", "on must be above zero"),
        ("short-flows(load=0, of=1Mbit/s)", "load must be above 0"),
        ("short-flows(load=0.1, of=1Mbit/s, smallest=1MB, largest=1MB)", "smallest must be"),
    ],
)
def test_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse(text)
    assert words in str(refused.value)


def test_every_example_in_a_message_is_understood() -> None:
    assert set(EXAMPLES) == set(GENERATORS)
    for name, text in EXAMPLES.items():
        assert parse(text).name == name


rates = st.floats(0.001, 1e12)
times = st.floats(1e-6, 1e6)
names = st.sampled_from(["", "cubic", "bbr", "reno"])
streams = st.integers(1, 64)
specs = st.one_of(
    st.builds(Tcp, names, streams),
    st.builds(TcpSquare, names, streams, times, times),
    st.builds(
        ShortFlows,
        st.floats(1e-6, 2),
        rates,
        st.integers(1, 10**6),
        st.integers(10**6 + 1, 10**12),
        st.floats(0.1, 10),
        st.integers(0, 10**12),
        names,
    ),
    st.builds(Udp, rates),
    st.builds(UdpSquare, rates, times, times),
    st.builds(lambda rate, burst, rest: UdpBursty(rate, burst + rest, burst), rates, times, times),
    st.builds(GridFtp, streams, names),
)


@given(specs)
def test_what_is_shown_reads_as_the_same(spec: Spec) -> None:
    assert parse(show(spec)) == spec
