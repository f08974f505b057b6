"""A switch that knows OpenFlow 1.3 to the letter refuses to match on the flags of TCP; all else goes on."""

import asyncio

import pytest
from mpx_controller import wire
from mpx_controller.cookies import Kind, kind_of
from mpx_controller.flows import Add, Entry, match
from mpx_controller.mptcp.multipath_tcp import MultipathTcp
from mpx_controller.network.forwarding import Bands
from mpx_controller.openflow import Switches
from mpx_controller.path_sets.selection import widest_apart
from os_ken.ofproto import ofproto_v1_3 as ofp
from os_ken.ofproto import ofproto_v1_3_parser as parser
from wans import network

OTHER = Entry(0, 7, match(in_port=1), 0x6D70 << 48 | Kind.PATH_SET << 40 | 1, (2,))


class Hardware:
    """The far end of a connection: one port, no entries, and a mind of its own."""

    def __init__(self) -> None:
        self.held: list[int] = []  # cookies

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(wire.hello(1))
        while True:
            try:
                header = await reader.readexactly(wire.HEADER_BYTES)
                body = await reader.readexactly(int.from_bytes(header[2:4], "big") - len(header))
            except asyncio.IncompleteReadError:
                return
            kind, xid = header[1], header[4:8]
            if kind == ofp.OFPT_FEATURES_REQUEST:
                answer(
                    writer,
                    ofp.OFPT_FEATURES_REPLY,
                    xid,
                    (9).to_bytes(8, "big") + bytes(4) + b"\xfe" + bytes(11),
                )
            elif kind == ofp.OFPT_MULTIPART_REQUEST and body[:2] == ofp.OFPMP_PORT_DESC.to_bytes(2, "big"):
                port = (1).to_bytes(4, "big") + bytes(4) + b"\2\0\0\0\0\1" + bytes(2) + bytes(16) + bytes(32)
                answer(writer, ofp.OFPT_MULTIPART_REPLY, xid, body[:2] + bytes(6) + port)
            elif kind == ofp.OFPT_MULTIPART_REQUEST:
                answer(writer, ofp.OFPT_MULTIPART_REPLY, xid, body[:2] + bytes(6))
            elif kind == ofp.OFPT_BARRIER_REQUEST:
                answer(writer, ofp.OFPT_BARRIER_REPLY, xid, b"")
            elif kind == ofp.OFPT_FLOW_MOD:
                cookie = int.from_bytes(body[:8], "big")
                if kind_of(cookie) == Kind.MPTCP:
                    why = (ofp.OFPET_BAD_MATCH, ofp.OFPBMC_BAD_FIELD)
                    told = b"".join(each.to_bytes(2, "big") for each in why)
                    answer(writer, ofp.OFPT_ERROR, xid, told + (header + body)[:64])
                else:
                    self.held.append(cookie)


def answer(writer: asyncio.StreamWriter, kind: int, xid: bytes, body: bytes) -> None:
    length = wire.HEADER_BYTES + len(body)
    writer.write(bytes([wire.VERSION, kind]) + length.to_bytes(2, "big") + xid + body)


def test_it_is_off_there_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        steered = network(loop.time())
        mptcp = MultipathTcp(steered, Bands(), widest_apart)
        seen = asyncio.Event()

        def changed() -> None:
            switches.send(mptcp.network_changed(loop.time()))
            if mptcp.off:
                seen.set()

        switches = Switches(steered, mptcp, changed=changed)
        hardware = Hardware()
        server = await asyncio.start_server(switches.accept, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        serving = asyncio.create_task(hardware.serve(reader, writer))
        keeping = asyncio.create_task(switches.keep())
        await asyncio.wait_for(seen.wait(), 30)
        switches.send([(9, Add(OTHER))])
        await switches.confirmed([9])
        assert mptcp.off == {9} and OTHER.cookie in hardware.held
        assert [each.cookie for each in steered.rules(9).wanted.values() if kind_of(each.cookie) == 3] == []
        keeping.cancel()
        switches.close()
        server.close()
        await serving

    asyncio.run(run())
    assert [line for line in caplog.messages if "TCP flags" in line] == [
        "switch 9 cannot match on TCP flags: connections of its hosts are not spread"
    ]


def test_errors_of_other_entries_are_no_business_of_it() -> None:
    for cookie, found in ((OTHER.cookie, OTHER.cookie), (5, None)):
        sent = wire.to_bytes(Add(Entry(0, 7, (), cookie)), 3)
        error = parser.OFPErrorMsg(None, data=sent[:64])
        assert wire.refused_cookie(error) == found
    assert wire.refused_cookie(parser.OFPErrorMsg(None, data=wire.barrier(3))) is None
    assert wire.refused_cookie(parser.OFPErrorMsg(None, data=None)) is None
