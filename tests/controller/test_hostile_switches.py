"""Bytes that no switch should send: that connection ends with a line in the log, and nobody else notices."""

import asyncio
import contextlib
import logging
import socket
import ssl
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpx_controller import channel, wire
from mpx_controller.channel import Channel, SwitchEvents
from mpx_controller.cookies import Kind, cookie
from mpx_controller.flow_stats import listed_entries
from mpx_controller.flows import Add, Counted, Entry
from mpx_controller.graph import Graph
from mpx_controller.log_limit import ALL_LINES, LINES, LogLimit
from mpx_controller.message_check import MOST_FIELDS, Malformed, NotNeeded, check_head, match_end
from mpx_controller.network import heard_frame
from mpx_controller.network.heard_frame import announced_by
from mpx_controller.openflow import MOST_JOINING
from mpx_controller.pending_replies import MOST_ANSWER, CutOff, PendingReplies, SwitchLost
from os_ken.ofproto import ofproto_v1_3 as ofp
from running_controller import controller
from switches import address, arp_from, hardware
from test_wire import ENTRIES
from wire_switches import wire_wan

Eventually = Callable[..., None]
HELLO = wire.hello(0)


def message(kind: int, body: bytes = b"", version: int = ofp.OFP_VERSION) -> bytes:
    return struct.pack("!BBHI", version, kind, 8 + len(body), 0) + body


def multipart(kind: int, body: bytes) -> bytes:
    return message(ofp.OFPT_MULTIPART_REPLY, struct.pack("!HH4x", kind, 0) + body)


# os-ken reads these without end: each has an element of length 0, or of more than there is.
ENDLESS = [
    message(ofp.OFPT_QUEUE_GET_CONFIG_REPLY, bytes(24)),
    message(ofp.OFPT_QUEUE_GET_CONFIG_REPLY, bytes(16) + b"\0\x20" + bytes(22)),
    multipart(ofp.OFPMP_GROUP_DESC, b"\0\x10" + bytes(22)),
    multipart(ofp.OFPMP_METER, b"\0\0\0\0\0\0" + bytes(34)),
    multipart(ofp.OFPMP_METER_CONFIG, b"\0\x18" + bytes(22)),
    multipart(ofp.OFPMP_TABLE_FEATURES, bytes(64)),
    multipart(ofp.OFPMP_GROUP, bytes(40)),
    multipart(ofp.OFPMP_TABLE, bytes(24)),
    multipart(ofp.OFPMP_EXPERIMENTER, bytes(8)),
]
OTHERS = [message(kind, bytes(24)) for kind in (0, 4, 5, 8, 13, 14, 15, 18, 22, 25, 27, 29, 30, 99, 255)]


@pytest.mark.parametrize("data", [*ENDLESS, *OTHERS], ids=lambda data: f"{data[1]}-{data[:18].hex()}")
def test_kinds_that_nobody_asks_for_end_the_connection(data: bytes) -> None:
    with pytest.raises(CutOff, match="its connection is ended"):
        asyncio.run(joined_by(HELLO + data))


def test_a_connection_that_has_ended_is_not_asked_any_more(caplog: pytest.LogCaptureFixture) -> None:
    """What it says last may come as its echo is waited for; it is not called silent later."""
    features = message(ofp.OFPT_FEATURES_REPLY, struct.pack("!QIBB2xII", 7, 0, 254, 0, 0, 0))
    lists = multipart(ofp.OFPMP_PORT_DESC, b"") + multipart(ofp.OFPMP_FLOW, b"")

    async def run() -> None:
        reader, writer = await asyncio.open_connection(*there.getsockname())
        with contextlib.closing(there.accept()[0]) as switch:
            switch.sendall(HELLO + features + lists)
            made = Channel(reader, writer)
            await made.join()
            serving = asyncio.create_task(made.serve(SwitchEvents(lambda *_: True, *[lambda *_: None] * 4)))
            await asyncio.sleep(0)
            await asyncio.sleep(0)  # it is asked for an echo
            made.close()
            reader.feed_eof()
            with pytest.raises(SwitchLost):
                await serving
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()}, return_exceptions=True)

    with socket.create_server(("127.0.0.1", 0)) as there:
        asyncio.run(run())
    assert caplog.messages == []


async def joined_by(data: bytes) -> None:
    server = await asyncio.start_server(lambda reader, _: reader.read(), "127.0.0.1", 0)
    try:
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        reader = asyncio.StreamReader()
        reader.feed_data(data)
        reader.feed_eof()
        await Channel(reader, writer).join()
    finally:
        writer.close()
        server.close()


def test_a_switch_that_is_connected_is_cut_off_too(tmp_path: Path, eventually: Eventually) -> None:
    others = [*ENDLESS, OTHERS[1]]
    with (
        controller(tmp_path / "state.json") as running,
        wire_wan(running.port, Graph.of(range(1, len(others) + 2), []), {}) as switches,
    ):
        eventually(lambda: running.get("healthz") == {"switches": len(others) + 1})
        for number, data in enumerate(others, 1):
            switches[number].send(data[1], 0, data[8:])
        eventually(lambda: running.get("healthz") == {"switches": 1})
        eventually(lambda: [n for n, each in switches.items() if each.is_connected] == [len(others) + 1])


def test_a_switch_that_is_cut_off_and_its_line_and_everybody_else(
    tmp_path: Path, eventually: Eventually
) -> None:
    log = tmp_path / "log"
    with (
        controller(tmp_path / "state.json", errors=log) as running,
        wire_wan(running.port, Graph.of([1, 2], []), {}) as switches,
    ):
        eventually(lambda: running.get("healthz") == {"switches": 2})
        switches[1].send(ofp.OFPT_QUEUE_GET_CONFIG_REPLY, 0, bytes(24))
        eventually(lambda: not switches[1].is_connected)
        eventually(lambda: running.get("healthz") == {"switches": 1})
        for _ in range(3 * LINES):  # it comes again and again, and does not fill the log
            with socket.create_connection(("127.0.0.1", running.port), 30) as again:
                again.sendall(HELLO + ENDLESS[0])
                while again.recv(65536):
                    pass
        assert switches[2].is_connected
    assert running.process.returncode == 0
    said = log.read_text()
    assert "switch 1 sends a message of type 23, which controllers do not receive" in said
    assert said.count("sends a message of type 23") == 1 + LINES
    assert f"switch 127.0.0.1: {2 * LINES} more such lines were suppressed" in said


def test_who_says_nothing_keeps_no_others_out(tmp_path: Path, eventually: Eventually) -> None:
    with controller(tmp_path / "state.json") as running, contextlib.ExitStack() as held:
        mine = [
            held.enter_context(socket.create_connection(("127.0.0.1", running.port), 30, ("127.0.0.2", 0)))
            for _ in range(MOST_JOINING + 10)
        ]
        for connection in mine[MOST_JOINING:]:  # at once, and without a word
            with contextlib.suppress(ConnectionResetError):
                assert connection.recv(1) == b""
        with wire_wan(running.port, Graph.of([1], []), {}):
            eventually(lambda: running.get("healthz") == {"switches": 1})


@pytest.mark.parametrize(
    ("says", "line"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "sends HTTP: callers connect to the port of --api"),
        (None, "speaks TLS, and this port has none"),
        (b"SSH-2.0-OpenSSH_9.9\r\n", "does not speak OpenFlow"),
        (message(ofp.OFPT_ECHO_REQUEST), "does not speak OpenFlow"),
        (HELLO + message(ofp.OFPT_ECHO_REQUEST, version=1), "another version than OpenFlow 1.3 (0x1)"),
        (HELLO + struct.pack("!BBHI", 4, 2, 7, 0), "a message of 7 bytes"),
    ],
)
def test_another_protocol_is_one_line_at_once(tmp_path: Path, says: bytes | None, line: str) -> None:
    log = tmp_path / "log"
    with (
        controller(tmp_path / "state.json", errors=log) as running,
        socket.create_connection(("127.0.0.1", running.port), 30) as connection,
    ):
        peer = "{}:{}".format(*connection.getsockname())
        if says is None:
            with pytest.raises(OSError):
                ssl.create_default_context().wrap_socket(connection, server_hostname="localhost")
        else:
            connection.sendall(says)
            while connection.recv(65536):
                pass
    said = log.read_text()
    assert said.count(line) == 1 and f"WARNING {peer} " in said and "Traceback" not in said


def test_errors_without_end_do_not_fill_the_log(tmp_path: Path, eventually: Eventually) -> None:
    log, count, answered = tmp_path / "log", 5000, list[int]()
    with (
        controller(tmp_path / "state.json", errors=log) as running,
        wire_wan(running.port, Graph.of([1], []), {}) as switches,
    ):
        eventually(lambda: running.get("healthz") == {"switches": 1})
        for _ in range(count):
            switches[1].send(ofp.OFPT_ERROR, 0, bytes(4))
        switches[1].echo(lambda: answered.append(1))
        eventually(lambda: answered)
    lines = log.read_text().splitlines()
    assert sum("switch 1 sends an error" in line for line in lines) == LINES
    assert lines[-1].endswith(f"switch 1: {count - LINES} more such lines were suppressed")


def test_peers_under_ever_new_names_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        lines = LogLimit(logging.getLogger("lines"))
        for number in range(10 * ALL_LINES):
            lines.warning(str(number), "switch %d is odd", number)
        lines.close()

    asyncio.run(run())
    assert len(caplog.messages) == ALL_LINES + 1
    assert caplog.messages[-1] == f"{9 * ALL_LINES} lines about other switches were suppressed"


@pytest.mark.parametrize("kind", [ofp.OFPT_FLOW_REMOVED, ofp.OFPT_PORT_STATUS, ofp.OFPT_ECHO_REPLY])
def test_a_flood_of_messages_that_nobody_asked_for_has_to_rest(
    kind: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rests: list[float] = []
    wait = asyncio.sleep

    async def noted(wait_s: float) -> None:
        rests.append(wait_s)
        await wait(0)

    monkeypatch.setattr(channel, "TURN_S", 0.0)
    monkeypatch.setattr(channel, "UNASKED_RATE", 0.0)  # however long a busy machine takes
    monkeypatch.setattr(asyncio, "sleep", noted)
    few = message(kind, bytes([0] * 10 + [ofp.OFPRR_DELETE] + [0] * 61)) * 100
    with pytest.raises(SwitchLost):
        asyncio.run(joined_by(HELLO + few))
    assert channel.REST_S not in rests
    with pytest.raises(SwitchLost):
        asyncio.run(joined_by(HELLO + few * int(channel.UNASKED_BURST // 50)))
    assert channel.REST_S in rests


def test_an_answer_is_bounded_in_bytes() -> None:
    async def run() -> None:
        asked = PendingReplies()
        answer = asked.expect(7, bytes)
        for _ in range(MOST_ANSWER >> 16):
            assert asked.part(7, b"", 1 << 16, more=True) and not answer.done()
        asked.part(7, b"", 1, more=True)
        with pytest.raises(SwitchLost, match="is too long"):
            await answer

    asyncio.run(run())


@pytest.mark.parametrize(
    ("of", "body", "why"),
    [
        (ofp.OFPMP_PORT_DESC, bytes(64 * 1000), f"lists more than {channel.MOST_PORTS} ports"),
        (ofp.OFPMP_FLOW, struct.pack("!H54x", 56) * 1100, "lists too many ports and entries"),
    ],
)
def test_a_switch_that_lists_without_end_is_cut_off(
    of: int, body: bytes, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel, "MOST_ANSWER", 1 << 20)  # a busy machine reads more in longer than is given
    part = message(ofp.OFPT_MULTIPART_REPLY, struct.pack("!HH4x", of, 1) + body)
    with pytest.raises(CutOff, match=why):
        asyncio.run(joined_by(HELLO + part * 18))


def test_others_have_their_turn_while_one_long_list_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "TURN_S", 0.0)  # else this machine decides how many turns it takes
    count, turns = 500, list[int]()
    entries = b"".join(listed(Entry(0, each, (), cookie(Kind.PATH_SET, 1), (1,))) for each in range(count))

    async def others() -> None:
        while True:
            turns.append(1)
            await asyncio.sleep(0)

    async def run() -> None:
        beside = asyncio.create_task(others())
        with pytest.raises(SwitchLost, match="has ended"):
            await joined_by(HELLO + multipart(ofp.OFPMP_FLOW, entries))
        beside.cancel()

    asyncio.run(run())
    assert len(turns) > count // channel.ENTRIES_OF_A_TURN


def listed(entry: Entry) -> bytes:
    """Return an entry as switches list it."""
    rest = wire.to_bytes(Add(entry), 1)[48:]
    counts = struct.pack("!HHHH4xQQQ", entry.priority, entry.idle_s, 0, 0, entry.cookie, 3, 4)
    return struct.pack("!HBxII", 48 + len(rest), entry.table, 1, 2) + counts + rest


@given(st.lists(ENTRIES, max_size=4))
def test_entries_that_switches_list(entries: list[Entry]) -> None:
    told = list(listed_entries(multipart(ofp.OFPMP_FLOW, b"".join(map(listed, entries)))))
    assert told == [Counted(each, 3, 4) for each in entries]
    assert wire.read(multipart(ofp.OFPMP_FLOW, b"".join(map(listed, entries)))).body == told


@given(ENTRIES, st.lists(st.binary(min_size=8, max_size=80), max_size=3), st.integers(0, 3))
def test_entries_of_others_are_passed_over_whatever_is_in_them(
    entry: Entry, others: list[bytes], at: int
) -> None:
    foreign = [struct.pack("!HBxIIHHHH4xQQQ", 48 + len(each), *[0] * 7, 0x77, 3, 4) + each for each in others]
    foreign.insert(at, listed(entry))
    assert list(listed_entries(multipart(ofp.OFPMP_FLOW, b"".join(foreign)))) == [Counted(entry, 3, 4)]


@given(ENTRIES, st.data())
def test_a_length_that_does_not_fit_is_malformed_wherever_it_is(entry: Entry, data: st.DataObject) -> None:
    """Any two bytes of what a switch lists, as a length: it is read or refused, and never for ever."""
    whole = bytearray(multipart(ofp.OFPMP_FLOW, listed(entry)))
    at = data.draw(st.integers(16, len(whole) - 2))
    whole[at : at + 2] = data.draw(st.sampled_from((0, 1, 7, 8, 0x7FFF, 0xFFF8, 0xFFFF))).to_bytes(2)
    with contextlib.suppress(Malformed):
        assert len(list(listed_entries(bytes(whole)))) <= 1


@pytest.mark.parametrize(
    "fields",
    [
        bytes([0x80, 0, 0x0A, 0]),
        bytes([0x80, 0, 0x0A, 2, 8]),
        bytes([0x80, 0, 0x0A, 2, 8, 0]) * 2,
        b"".join(bytes([0x80, 0x01, each, 1, 0]) for each in range(0, 130, 2)),
        b"\xff\xff\0\4abcd",
    ],
)
def test_fields_without_a_value_or_twice_or_too_many(fields: bytes) -> None:
    data = struct.pack("!HH", 1, 4 + len(fields)) + fields + bytes(8)
    with pytest.raises(Malformed):
        match_end(data, 0, len(data))


@given(st.binary(min_size=8, max_size=8), st.booleans())
def test_any_head_is_a_length_or_refused(head: bytes, first: bool) -> None:
    with contextlib.suppress(NotNeeded):
        assert check_head(head, first=first) >= 8


def test_a_frame_whose_match_has_more_fields_than_there_are_is_none() -> None:
    for count, number in ((MOST_FIELDS - 1, 7), (MOST_FIELDS, None), (16_000, None)):
        fields = bytes([0x80, 0, 2, 0]) * count + bytes([0x80, 0, 0, 4, 0, 0, 0, 7])
        matched = struct.pack("!HH", 1, 4 + len(fields)) + fields + bytes(-(4 + len(fields)) % 8)
        read = wire.frame_in(message(ofp.OFPT_PACKET_IN, bytes(16) + matched + b"\0\0frame"))
        assert (read and read.number) == number


# os-ken reads each of these without end: SCTP, TCP options and BGP, as a switch could hand them over.
FRAMES = [
    bytes(12) + b"\x86\xdd" + bytes.fromhex("60000000003c84ff") + bytes(32) + bytes.fromhex("003a0000") * 16,
    bytes(12)
    + b"\x08\x00"
    + bytes.fromhex("4500007700000000400600000a0000010a0000020286028600000000000000006e70b9621a021800")
    + bytes(64),
    bytes(12)
    + b"\x08\x00"
    + bytes.fromhex("4500007700000000400600000a0000010a00000200b300b30000000000000000501800640000")
    + bytes(2)
    + b"\xff" * 16
    + b"\x00\x3c\x02"
    + bytes(70)
    + b"\x04",
]


@pytest.mark.parametrize("frame", FRAMES)
def test_frames_are_read_no_further_than_their_addresses(frame: bytes) -> None:
    assert announced_by(frame) == ()


def test_a_frame_with_tags_tells_as_one_without() -> None:
    frame = arp_from("src")
    told = (heard_frame.Announcement(hardware("src"), address("src")),)
    tag = b"\x81\x00\x00\x05"
    for tags in (b"", tag, b"\x88\xa8\x00\x05" + tag):
        assert announced_by(frame[:12] + tags + frame[12:]) == told
    assert announced_by(frame[:12] + 3 * tag + frame[12:]) == ()
    assert announced_by(frame + bytes(60_000)) == told
