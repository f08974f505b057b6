"""What switches should not say, and more than they may: that switch is the worse for it, and nothing else."""

import asyncio
import socket
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from graphs import THESIS_A
from mpx_controller import wire
from mpx_controller.channel import Channel
from mpx_controller.cookies import Kind, cookie
from mpx_controller.flows import FOUND_AT_ONCE, Entry, Key, Remove, SendOut, match
from mpx_controller.graph import Graph, Port
from mpx_controller.network.discovery import MOST_PORTS
from mpx_controller.network.discovery_frame import is_to_all
from mpx_controller.network.ports import PortState
from mpx_controller.openflow import Switches
from mpx_controller.pending_replies import SwitchLost
from os_ken.ofproto import ofproto_v1_3 as ofp
from running_controller import controller
from switches import address
from wans import ENDS, network
from wire_switches import total, wire_wan

Eventually = Callable[..., None]
ECHO = struct.pack("!BBHI", 4, ofp.OFPT_ECHO_REQUEST, 8, 1)


@pytest.mark.parametrize(
    ("answers", "says"),
    [
        ([(ofp.OFPT_ECHO_REPLY, b"")], "switch 1 sends a wrong answer: OFPEchoReply"),
        ([(ofp.OFPT_BARRIER_REPLY, b"")], "switch 1 sends a wrong answer: OFPBarrierReply"),
        ([(ofp.OFPT_MULTIPART_REPLY, total(kind=ofp.OFPMP_PORT_DESC))], "answer: OFPPortDescStatsReply"),
        ([(ofp.OFPT_MULTIPART_REPLY, total(ofp.OFPMPF_REPLY_MORE)), (ofp.OFPT_MULTIPART_REPLY, total())], ""),
    ],
)
def test_an_answer_of_another_kind_or_in_two_parts(
    tmp_path: Path, eventually: Eventually, answers: list[tuple[int, bytes]], says: str
) -> None:
    log = tmp_path / "log"
    with (
        controller(tmp_path / "state.json", 0, "[path_sets]\nlease_s = 6\n", errors=log) as running,
        wire_wan(running.port, THESIS_A, ENDS) as switches,
    ):
        eventually(lambda: running.get("topology")["edges"] == ["1:1000", "6:1000"])
        switches[1].totals = answers
        pair = {"source": address("src"), "sink": address("dst")}
        number = running.ask("POST", "path-sets", pair)["id"]
        running.ask("POST", f"path-sets/{number}/streams", {"ports": [4000]})
        eventually(lambda: switches[1].asked_totals >= 2)
        assert running.get("healthz") == {"switches": 6}
    assert running.process.returncode == 0
    assert says in log.read_text() and "Traceback" not in log.read_text()


def test_what_cannot_be_sent_ends_the_connection_of_that_switch(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        joined = asyncio.Event()
        steered = network(loop.time())
        switches = Switches(steered, changed=joined.set)
        server = await asyncio.start_server(switches.accept, "127.0.0.1", 0)
        with wire_wan(server.sockets[0].getsockname()[1], Graph.of([1, 2], []), {}):
            while len(steered.connected) < 2:
                await asyncio.wait_for(joined.wait(), 30)
                joined.clear()
            switches.send([(1, SendOut(bytes(70_000), (1,))), (2, SendOut(bytes(100), (1,)))])
            with pytest.raises(SwitchLost):
                await switches.confirmed([1])
            await switches.confirmed([2])
        server.close()

    asyncio.run(run())
    assert "the connection of switch 1 is ended after an error" in caplog.messages


def test_ports_of_a_switch_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    steered = network()
    ports = [PortState(Port(7, number), "02:00:00:00:00:01") for number in range(1, 4201)]
    messages = steered.switch_up(7, ports, {}, 100.0)
    while steered.next_s() < 102.0:
        messages += steered.tick(max(100.0, steered.next_s()) + 1e-6)
    assert len(steered.edge_ports()) == MOST_PORTS
    assert max(len(wire.to_bytes(message, 1)) for _, message in messages) < 1 << 16
    (said,) = caplog.messages
    assert said.startswith(f"switch 7 has more than {MOST_PORTS} ports; port {MOST_PORTS + 1} and")
    steered.port_changed(ports[-1], 103.0)
    assert ports[-1] not in steered.ports(7)
    steered.port_gone(ports[0].port)
    steered.port_changed(ports[-1], 103.0)
    assert ports[-1] in steered.ports(7) and len(steered.ports(7)) == MOST_PORTS


def test_entries_that_are_not_wanted_go_bit_by_bit_and_none_that_is_put_meanwhile() -> None:
    steered = network()
    count = 5 * FOUND_AT_ONCE
    left = [Entry(200, each, (), cookie(Kind.PATH_SET, 1), (1,)) for each in range(count)]
    came = [steered.switch_up(7, [], {entry.key: entry for entry in left}, 100.0)]
    steered.change(7, "somebody", [left[-1]])
    while steered.next_s() < 0:
        came.append(steered.tick(101.0))
    removed = [[message.key for _, message in messages if isinstance(message, Remove)] for messages in came]
    assert max(map(len, removed)) <= FOUND_AT_ONCE
    assert sorted(key for some in removed for key in some) == sorted(entry.key for entry in left[:-1])
    steered.switch_up(7, [], {entry.key: entry for entry in left}, 102.0)
    steered.switch_down(7, 102.0)
    steered.tick(102.0)
    assert steered.next_s() > 0  # there is nobody who could remove them


def test_a_port_that_is_gone_is_not_known_any_more_also_where_it_had_a_link() -> None:
    wan_ports = [PortState(Port(switch, 1), "02:00:00:00:00:01") for switch in (1, 2)]
    steered = network()
    asked = [each for state in wan_ports for each in steered.switch_up(state.port.switch, [state], {}, 100.0)]
    sent = {message.data for at, message in asked if at == 1 and isinstance(message, SendOut)}
    (question,) = (each for each in sent if not is_to_all(each))
    steered.frame_in(wan_ports[1].port, question, 100.1)
    steered.port_gone(wan_ports[1].port)
    assert steered.ports(2) == []


def test_echoes_that_are_not_read_end_the_connection(tmp_path: Path, eventually: Eventually) -> None:
    log = tmp_path / "log"
    long = struct.pack("!BBHI", 4, ofp.OFPT_ECHO_REQUEST, 60_008, 1) + bytes(60_000)
    with controller(tmp_path / "state.json", errors=log) as running:
        with socket.create_connection(("127.0.0.1", running.port), 30) as switch, pytest.raises(OSError):
            switch.sendall(wire.hello(0))
            while True:
                switch.sendall(long)
        eventually(lambda: "does not read our messages" in log.read_text())
        assert running.get("healthz") == {"switches": 0}


def test_a_flood_of_echoes_leaves_others_their_turn() -> None:
    async def run() -> int:
        turns = 0
        server = await asyncio.start_server(lambda reader, _: reader.read(), "127.0.0.1", 0)
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        reader = asyncio.StreamReader()
        reader.feed_data(wire.hello(0) + 16_000 * ECHO)
        reader.feed_eof()
        joining = asyncio.create_task(Channel(reader, writer).join())
        while not joining.done():
            turns += 1
            await asyncio.sleep(0)
        with pytest.raises(SwitchLost):
            await joining
        writer.close()
        server.close()
        return turns

    assert asyncio.run(run()) > 10


def test_tens_of_thousands_of_entries_leave_others_their_turn_and_go_in_order() -> None:
    first = [Remove(Key(0, 9, match(tcp_dst=each % 65536)), each) for each in range(20_000)]
    last = SendOut(b"the last", (1,))

    async def run() -> tuple[bytes, int]:
        told: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        async def read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            data = b""
            while not data.endswith(b"the last") and (more := await reader.read(1 << 20)):
                data += more
            told.set_result(data)
            writer.close()

        server = await asyncio.start_server(read, "127.0.0.1", 0)
        turns = 0
        channel = Channel(*await asyncio.open_connection(*server.sockets[0].getsockname()))
        channel.send(first)
        channel.send([last])
        while not told.done():
            turns += 1
            await asyncio.sleep(0)
        channel.close()
        server.close()
        return told.result(), turns

    data, turns = asyncio.run(run())
    assert turns > 20
    assert data == b"".join(wire.to_bytes(each, xid) for xid, each in enumerate([*first, last], 1))
