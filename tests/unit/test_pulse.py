"""Rate pulses: what the queue shows of our share, connections that send less, and probes around both."""

import socket
import struct
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_probe_run import BEGAN_S, Scripted

from mpx.errors import Interrupted
from mpx.net import connection_pacer
from mpx.net.tcp_info import tcp_info
from mpx.recognition.pulses.local_pacing import LocalPacer
from mpx.recognition.pulses.maker import EVERY, PulseMaker
from mpx.recognition.pulses.pulse import (
    DEPTH,
    LEAST_RTT,
    LEAST_S,
    MOST_S,
    PROBES,
    Moved,
    RatePulse,
    length_s,
    response,
)
from mpx.rtt.runner import Run
from mpx.rtt.schedule import single_s
from mpx.rtt.series import Probe

BASE_S = 0.03
NEAR_S = connection_pacer.SHORTEST_RTT_S  # as it is outside of tests
SO_MAX_PACING_RATE = 47


@pytest.fixture(autouse=True)
def far(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loopback is a long way here."""
    monkeypatch.setattr("mpx.net.connection_pacer.SHORTEST_RTT_S", 0.0)


def dip_of(seconds: float, depth: float, share: float, rtt_s: float) -> RatePulse:
    """One 5 s after the beginning, by what a share of 1 Mbyte/s is missed after a round trip."""
    due_s, over_s = 5.0 + rtt_s - 0.005, 5.0 + seconds + rtt_s + 0.005
    missing = 1e6 * depth * (1 - share) * seconds
    acked = round(1e6 * (over_s - 5.0) - missing)
    looks = Moved(5.0, 7), Moved(due_s, 7 + round(1e6 * (due_s - 5.0))), Moved(over_s, 7 + acked)
    return RatePulse(5.0, 5.0 + seconds, depth, looks)


def queue_s(t_s: float, full_s: float, dip: RatePulse, share: float) -> float:
    """A queue that only our dip changes."""
    inside_s = min(max(t_s - dip.from_s, 0.0), dip.until_s - dip.from_s)
    return full_s - share * dip.depth * inside_s


@given(st.floats(0.01, 0.5), st.floats(0.02, 1.0), st.floats(0.3, 1.0))
def test_the_fall_of_the_queue_is_our_share(full_s: float, share: float, depth: float) -> None:
    seconds = length_s(full_s, BASE_S + full_s)
    dip = dip_of(seconds, depth, share, BASE_S + full_s)
    around = [5.0 - n * 0.001 for n in range(PROBES)] + [dip.until_s - n * 0.001 for n in range(PROBES)]
    elsewhere = [1.0, 4.9, dip.until_s + 0.01, 7.0]
    probes = [Probe(t_s, BASE_S + queue_s(t_s, full_s, dip, share)) for t_s in sorted(around + elsewhere)]
    told = response(dip, probes)
    assert told is not None and told.t_s == 5.0
    assert told.share == pytest.approx(share, rel=0.02)
    assert told.kept == pytest.approx(share, abs=0.01)
    least_s = min(probe.rtt_s or 0 for probe in probes)
    assert least_s >= BASE_S + (0.99 - 0.8 * depth) * full_s  # it does not run empty


def test_a_dip_whose_probes_are_lost_tells_nothing() -> None:
    dip = dip_of(0.02, DEPTH, 0.5, 0.05)
    before, end = [4.997, 4.998, 4.999, 5.0], [5.017, 5.018, 5.019, 5.02]
    sent = [Probe(t_s, 0.05) for t_s in before + end]
    assert response(dip, sent) is not None
    assert response(dip, [*sent[:4], *(Probe(t_s, None) for t_s in end[:3]), sent[7]]) is None
    assert response(dip, [Probe(t_s, None) for t_s in before] + sent[4:]) is None
    nothing = Moved(5.0, 7), Moved(5.045, 7), Moved(5.075, 7)  # of our data arrived before
    assert response(replace(dip, moved=nothing), sent) is None


@given(st.floats(0, 1), st.floats(0, 0.2))
def test_a_dip_is_short(delay_s: float, base_s: float) -> None:
    seconds = length_s(delay_s, base_s + delay_s)
    if base_s + delay_s < 2 * LEAST_S:
        assert seconds == 0
    elif seconds:
        assert LEAST_S <= seconds <= min(MOST_S, max(LEAST_S, 0.8 * delay_s))
        assert seconds < base_s + delay_s  # it is over before what is missing fails to arrive
    else:
        assert base_s + delay_s < 3 * LEAST_S


class Sent:
    """Connections over which so many bytes arrive at a time, on a clock of their own."""

    def __init__(self, pairs: list[tuple[socket.socket, socket.socket]]) -> None:
        self.pairs = pairs
        self.now_s = 100.0

    def connections(self) -> list[socket.socket]:
        return [sender for sender, _ in self.pairs]

    def pass_on(self, *sizes: int) -> None:
        for (sender, receiver), size in zip(self.pairs, sizes, strict=True):
            sender.sendall(bytes(size))
            left = size
            while left:
                left -= len(receiver.recv(left))

    def acked(self) -> list[int]:
        infos = [tcp_info(sender) for sender in self.connections()]
        return [info.bytes_acked - 1 for info in infos if info]  # the SYN counts as one

    def paces(self) -> list[int]:
        """Byte/s of each."""
        each = (sender.getsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, 8) for sender in self.connections())
        return [struct.unpack("=Q", raw)[0] for raw in each]


@contextmanager
def sending(count: int) -> Iterator[Sent]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        pairs = []
        for _ in range(count):
            sender = socket.create_connection(listening.getsockname())
            pairs.append((sender, listening.accept()[0]))
        sent = Sent(pairs)
        yield sent
        for sender, receiver in sent.pairs:
            sender.close()
            receiver.close()


def test_each_connection_sends_a_part_of_what_it_sent_and_then_all_again(eventually) -> None:
    with sending(2) as sent:
        pacer = LocalPacer(sent.connections, lambda: sent.now_s)
        pacer.measure()
        assert not pacer.slow(0.25, 1.0)  # nobody knows yet what they send
        free = sent.paces()
        sent.pass_on(400_000, 800_000)
        sent.now_s += 2.0

        eventually(lambda: sent.acked() == [400_000, 800_000])
        pacer.measure()
        assert pacer.slow(0.25, 1.0) and pacer.depth() == pytest.approx(0.75)
        assert sent.paces()[1] == pytest.approx(2 * sent.paces()[0], rel=0.05)
        assert sent.paces()[0] == pytest.approx(0.25 * 200_000, rel=0.05)
        pacer.restore()
        assert min(sent.paces()) >= min(*free, 1 << 60)


def test_a_new_connection_is_left_alone_and_so_are_all(eventually) -> None:
    with sending(2) as sent:
        new = sent.pairs.pop()
        pacer = LocalPacer(sent.connections, lambda: sent.now_s)
        pacer.measure()
        sent.pass_on(400_000)
        sent.now_s += 1.0
        sent.pairs.append(new)
        pacer.measure()
        assert not pacer.slow(0.25, 1.0)
        new[0].close()
        sent.now_s += 1.0
        pacer.measure()  # closed: does not count
        assert not pacer.slow(0.25, 1.0) or pacer.depth() == 0.75


def test_near_is_what_is_too_near_for_a_pulse() -> None:
    assert LEAST_RTT * LEAST_S == NEAR_S
    assert length_s(0.01, NEAR_S) > 0 == length_s(0.01, NEAR_S - 0.0001)


def test_near_connections_are_left_alone(eventually, monkeypatch: pytest.MonkeyPatch) -> None:
    """No dip tells anything over them, and pacing, once it was on, would stay."""
    monkeypatch.setattr("mpx.net.connection_pacer.SHORTEST_RTT_S", 1.0)
    with sending(1) as sent:
        pacer = LocalPacer(sent.connections, lambda: sent.now_s)
        free = sent.paces()
        pacer.measure()
        sent.pass_on(400_000)
        sent.now_s += 1.0
        eventually(lambda: sent.acked() == [400_000])
        pacer.measure()
        assert not pacer.slow(0.25, 1.0)
        pacer.restore()
        assert sent.paces() == free


def test_what_is_too_slow_to_be_slowed_is_not() -> None:
    with sending(1) as sent:
        pacer = LocalPacer(sent.connections, lambda: sent.now_s)
        pacer.measure()
        sent.pass_on(2_000)
        sent.now_s += 1.0
        pacer.measure()
        assert not pacer.slow(0.25, 0.01)  # two segments last longer


class Shared(Scripted):
    """A path with a queue of 60 ms, of which `share` is ours; we send 100 kB between two single probes."""

    def __init__(self, sent: Sent, share: float) -> None:
        super().__init__(lambda _: self.rtt_s())
        self.sent, self.share = sent, share
        self.queue_s, self.before_s = 0.06, BEGAN_S

    def rtt_s(self) -> float:
        is_slow = self.sent.paces()[0] < 1 << 60
        if is_slow:
            self.queue_s -= self.share * DEPTH * (self.now_s - self.before_s)
        else:
            self.queue_s = 0.06
        self.before_s = self.now_s
        return BASE_S + self.queue_s

    def ask(self, number: int) -> float:
        if not self.sent_s or self.now_s > max(self.sent_s.values()) + 0.03:
            self.sent.pass_on(100_000)
        return super().ask(number)


@pytest.mark.parametrize("share", [1.0, 0.5, 0.1])
def test_dips_between_probes_tell_our_share(share: float) -> None:
    with sending(1) as sent:
        way = Shared(sent, share)
        dips = PulseMaker(LocalPacer(sent.connections, way.clock), way.clock)
        run = Run(way, clock=way.clock)
        with pytest.raises(Interrupted):
            run.go(dips.times(run, lambda: BASE_S), lambda: way.now_s > BEGAN_S + 12)
        probes = [Probe(BEGAN_S + probe.t_s, probe.rtt_s) for probe in run.probes()]
        told = dips.responses(probes, BEGAN_S)
        assert 8 <= len(told) <= 12
        assert [each.share for each in told] == pytest.approx([share] * len(told), rel=0.1)
        assert dips.responses(probes, BEGAN_S + 6) == [each for each in told if each.t_s >= BEGAN_S + 6]
        single = dips.without(probes)
        assert len(probes) - len(single) >= 8 * 2 * (PROBES + 1)
        due = [single_s(number) for number in range(len(single))]
        assert [probe.t_s - BEGAN_S for probe in single] == pytest.approx(due, abs=0.005)
        assert sent.paces()[0] >= 1 << 60  # whatever ended it


def test_whoever_is_stopped_in_a_dip_does_not_stay_slow() -> None:
    with sending(1) as sent:
        way = Shared(sent, 0.5)
        dips = PulseMaker(LocalPacer(sent.connections, way.clock), way.clock)
        run = Run(way, clock=way.clock)
        with closing(dips.times(run, lambda: BASE_S)) as times, pytest.raises(Interrupted):
            run.go(times, lambda: sent.paces()[0] < 1 << 60)
        assert sent.paces()[0] >= 1 << 60


def test_who_is_late_to_end_a_dip_makes_none_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    with sending(1) as sent:
        way = Shared(sent, 0.5)
        dips = PulseMaker(LocalPacer(sent.connections, way.clock), way.clock)
        run = Run(way, clock=way.clock)
        ask = way.ask

        def late(number: int) -> float:
            if sent.paces()[0] < 1 << 60 and way.now_s < BEGAN_S + 5:
                way.now_s += 0.1  # the program stands still while it is to end one
            return ask(number)

        monkeypatch.setattr(way, "ask", late)
        with pytest.raises(Interrupted):
            run.go(dips.times(run, lambda: BASE_S), lambda: way.now_s > BEGAN_S + 45)
        told = dips.responses([Probe(BEGAN_S + each.t_s, each.rtt_s) for each in run.probes()], BEGAN_S)
        first, *later = [each.t_s - BEGAN_S for each in told]
        assert first < 5 and 30 < later[0] - first < 35 and len(later) > 5


def test_probes_of_dips_are_told_from_the_others_however_busy_the_host_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with sending(1) as sent:
        way = Shared(sent, 0.5)
        dips = PulseMaker(LocalPacer(sent.connections, way.clock), way.clock)
        run = Run(way, clock=way.clock)
        ask = way.ask

        def held_up(number: int) -> float:
            sent_s = ask(number)
            way.now_s += 0.002 + (0.6 if number == 100 else 0.0)  # other threads run before it returns
            return sent_s

        monkeypatch.setattr(way, "ask", held_up)
        with pytest.raises(Interrupted):
            run.go(dips.times(run, lambda: BASE_S), lambda: way.now_s > BEGAN_S + 8)
        probes = [Probe(BEGAN_S + probe.t_s, probe.rtt_s) for probe in run.probes()]
        single = dips.without(probes)
        assert run.not_sent and len(probes) > len(single) + 4 * PROBES
        assert len(single) + run.not_sent == pytest.approx(8 * EVERY, abs=5)


class Cannot(LocalPacer):
    """As a server that is no `mpx serve`."""

    can = False


def test_nobody_probes_for_dips_that_cannot_be_made() -> None:
    with sending(1) as sent:
        way = Shared(sent, 0.5)
        dips = PulseMaker(Cannot(sent.connections, way.clock), way.clock)
        run = Run(way, clock=way.clock)
        with pytest.raises(Interrupted):
            run.go(dips.times(run, lambda: BASE_S), lambda: way.now_s > BEGAN_S + 5)
        assert len(way.sent_s) == pytest.approx(5 * EVERY, abs=2)


def test_while_they_rest_there_are_none() -> None:
    with sending(1) as sent:
        way = Shared(sent, 0.5)
        dips = PulseMaker(LocalPacer(sent.connections, way.clock), way.clock)
        dips.rest(BEGAN_S + 5)
        run = Run(way, clock=way.clock)
        with pytest.raises(Interrupted):
            run.go(dips.times(run, lambda: BASE_S), lambda: way.now_s > BEGAN_S + 10)
        responses = dips.responses([Probe(BEGAN_S + each.t_s, each.rtt_s) for each in run.probes()], BEGAN_S)
        assert len(responses) > 2 and min(each.t_s for each in responses) >= BEGAN_S + 5


def test_where_the_round_trip_is_too_short_there_are_no_dips() -> None:
    with sending(1) as sent:
        way = Scripted(lambda _: 0.005)
        dips = PulseMaker(LocalPacer(sent.connections, way.clock), way.clock)
        run = Run(way, clock=way.clock)
        with pytest.raises(Interrupted):
            run.go(dips.times(run, lambda: 0.004), lambda: way.now_s > BEGAN_S + 5)
        assert len(way.sent_s) == pytest.approx(5 * EVERY, abs=2)
        assert (
            dips.responses([Probe(BEGAN_S + probe.t_s, probe.rtt_s) for probe in run.probes()], BEGAN_S) == []
        )
