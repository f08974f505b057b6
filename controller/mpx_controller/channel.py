"""The connection of one switch: OpenFlow messages in both directions, and its liveness."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import chain, repeat
from typing import Any, NamedTuple

from os_ken.ofproto import ofproto_v1_3 as ofp
from os_ken.ofproto import ofproto_v1_3_parser as parser

from mpx.engine.token_bucket import TokenBucket
from mpx_controller import wire
from mpx_controller.cookies import ALL, Kind, kind_of
from mpx_controller.flow_stats import listed_entries
from mpx_controller.flows import Counted, Entry, Gone, Key, Message, Total
from mpx_controller.graph import Port
from mpx_controller.log_limit import LogLimit
from mpx_controller.message_check import HEADER_BYTES, Malformed, NotNeeded, check, check_head, check_list
from mpx_controller.network.ports import PortState
from mpx_controller.outgoing import TURN_S, Outgoing
from mpx_controller.pending_replies import MOST_ANSWER, CutOff, PendingReplies, SwitchLost, WrongAnswer

ANSWER_S = 5.0  # within which a switch identifies itself, or confirms
FIRST_S, ASK_EVERY_S = (0.05, 0.1, 0.2), 2.5  # between questions whether it is there: first, and later on
THERE_S = 2.0  # within which a switch answers when another connection claims its identity
DEAD_S = 15.0  # a switch that is silent for so long is disconnected
MOST_WAITING = 16 << 20  # bytes that a switch has not read: it is not keeping up, and is given up
MOST_MESSAGE = 1 << 16
UNASKED_RATE, UNASKED_BURST = 200.0, 2000.0  # messages that are no answers: per second, and at once
ENTRIES_OF_A_TURN = 32  # that a switch lists
MOST_PORTS = 8192  # that a switch lists; far fewer are used (network.discovery)
REST_S = 0.002  # until a switch that sends too much has its next turn: it has a third of the time at most

ANSWERS = (ofp.OFPT_ECHO_REPLY, ofp.OFPT_BARRIER_REPLY, ofp.OFPT_MULTIPART_REPLY)

log = logging.getLogger(__name__)


class Joined(NamedTuple):
    """What a switch has said of itself: datapath id, ports, our entries that it holds, number of tables."""

    switch: int
    ports: list[PortState]
    entries: dict[Key, Entry]
    tables: int


class RefusedEntry(NamedTuple):
    """An entry that a switch has refused: of a path set the whole entry, of Multipath TCP only its cookie."""

    cookie: int
    entry: Entry | None = None


@dataclass(frozen=True)
class SwitchEvents:
    """The receivers of the messages of a switch.

    `frame_in` returns whether the frame was handled; `port_changed` gets the port, and whether it was
    removed; `entry_gone` the switch, and an entry that it has removed after its idle timeout; `answers` the
    switch, and in how many seconds it has answered; `refused` the switch, and the entry that it has refused.
    """

    frame_in: Callable[[Port, bytes], bool]
    port_changed: Callable[[PortState, bool], None]
    entry_gone: Callable[[int, Gone], None]
    answers: Callable[[int, float], None]
    refused: Callable[[int, RefusedEntry], None]


class Channel:
    """The connection of one switch: `join`, then `serve`, during which others call `send` and the like."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, lines: LogLimit | None = None
    ) -> None:
        address, port, *_ = writer.get_extra_info("peername") or writer.get_extra_info("sockname")
        self.address, self.peer = address, f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        self.joined: Joined | None = None
        self._reader, self._writer = reader, writer
        self._lines = lines or LogLimit(log)
        self._unasked = TokenBucket(UNASKED_RATE, UNASKED_BURST)
        self._listed = 0  # bytes of ports and entries before it has joined
        self._outgoing = Outgoing(self._write)
        self._sending: asyncio.Task[None] | None = None  # sends what is too much for one turn
        self._answers = PendingReplies()
        self._unread, self._at = b"", 0  # what has come, and where the next message begins in it
        self._heard_s = self._began_s = asyncio.get_running_loop().time()
        self._too_much = False  # whether in this turn it sent what is dropped, or is for its connection alone

    async def join(self) -> Joined:
        """Ask the switch for its identity, ports and entries of ours, and return them; raises SwitchLost."""
        try:
            return await asyncio.wait_for(self._join(), ANSWER_S)
        except TimeoutError:
            raise SwitchLost(f"{self.peer} has not identified itself within {ANSWER_S:g} s") from None

    async def serve(self, events: SwitchEvents) -> None:
        """Pass messages of the switch on until the connection ends, which raises SwitchLost."""
        assert self.joined is not None
        switch = self.joined.switch
        alive = asyncio.create_task(self._watch(lambda within_s: events.answers(switch, within_s)))
        try:
            while True:
                message = await self._message()
                if isinstance(message, wire.FrameIn):
                    self._too_much |= not events.frame_in(Port(switch, message.number), message.data)
                elif isinstance(message, parser.OFPPortStatus):
                    state = wire.port_state(switch, message.desc)
                    if state is not None:
                        events.port_changed(state, message.reason == ofp.OFPPR_DELETE)
                elif isinstance(message, parser.OFPFlowRemoved):
                    gone = wire.entry_gone(message)
                    if gone is not None:
                        events.entry_gone(switch, gone)
                elif isinstance(message, RefusedEntry):
                    events.refused(switch, message)
                else:
                    self._too_much = True
        finally:
            alive.cancel()
            self.close()

    def send(self, messages: Iterable[Message]) -> None:
        """Send; gives the connection up where the switch does not read."""
        self._outgoing.add(messages)
        if self._sending is None:
            self._outgoing.write_some()
            if self._outgoing:
                self._sending = asyncio.create_task(self._send_rest())

    async def confirmed(self) -> None:
        """Return when the switch has done or refused all that was sent; raises SwitchLost.

        By then `SwitchEvents.refused` was called for each entry that it has refused.
        """
        while self._sending is not None:
            await asyncio.wait({self._sending})
        if not self.is_open:
            raise SwitchLost(f"the connection of switch {self._name} has ended")
        await self._asked(wire.barrier, parser.OFPBarrierReply)

    async def total(self, cookie: int) -> Total:
        """Return what the entries of a cookie have counted together; raises SwitchLost."""
        answers = await self._asked(
            lambda xid: wire.total_question(cookie, xid), parser.OFPAggregateStatsReply
        )
        with self.apart():
            parts = [wire.total(answer) for answer in answers]
        return Total(sum(part.packets for part in parts), sum(part.bytes for part in parts))

    async def counted(self, cookie: int) -> list[Counted]:
        """Return what each entry of a cookie has counted; raises SwitchLost."""
        answers = await self._asked(
            lambda xid: wire.entries_question(xid, cookie, ALL), parser.OFPFlowStatsReply
        )
        with self.apart():
            return [each for answer in answers for each in answer.body]

    @property
    def key(self) -> str:
        """By what its lines in the log are limited: its datapath id, or its address until that is known."""
        return self._name if self.joined else self.address

    @property
    def is_open(self) -> bool:
        """Whether the connection has not been given up."""
        return not self._writer.transport.is_closing()

    async def is_there(self) -> bool:
        """Whether the switch answers."""
        try:
            await self._asked(wire.echo, parser.OFPEchoReply, THERE_S)
        except SwitchLost:
            return False
        return True

    @contextmanager
    def apart(self) -> Iterator[None]:
        """On any error inside, end the connection of this switch, and raise SwitchLost instead."""
        try:
            yield
        except SwitchLost:
            raise
        except Exception as error:  # an error of one switch must not affect others
            why = "the connection of switch %s is ended after an error"
            self._lines.warning(self.key, why, self._name, exc_info=True)
            self.close()
            raise SwitchLost(f"the connection of switch {self._name} has ended") from error

    def close(self) -> None:
        """End the connection."""
        self._writer.transport.abort()
        self._answers.lost(f"the connection of switch {self._name} has ended")

    async def _send_rest(self) -> None:
        """Send what waits in turns with others: tens of thousands of entries take seconds."""
        try:
            with suppress(SwitchLost), self.apart():
                while self._outgoing and self.is_open:
                    await asyncio.sleep(0)
                    self._outgoing.write_some()
        finally:
            self._sending = None

    async def _asked(
        self, question: Callable[[int], bytes], kind: type, within_s: float = ANSWER_S
    ) -> list[Any]:
        """Send the request that `question` makes of a message number; return all parts of the reply.

        Each part is a `kind`. Raises SwitchLost.
        """
        xid = self._outgoing.next_xid()
        answered = self._answers.expect(xid, kind)
        try:
            self._write(question(xid))
            return await asyncio.wait_for(answered, within_s)
        except WrongAnswer as wrong:
            self._lines.warning(self.key, "switch %s sends a wrong answer: %s", self._name, wrong)
            raise
        except TimeoutError:
            raise SwitchLost(f"switch {self._name} has not answered within {within_s:g} s") from None
        finally:
            self._answers.forget(xid)

    async def _join(self) -> Joined:
        self._write(wire.hello(self._outgoing.next_xid()))
        await self._message(first=True)
        self._write(wire.questions(self._outgoing.next_xid()))
        switch, tables = 0, 0
        ports: list[PortState | None] = []
        found: dict[Key, Entry] = {}
        missing = {"features", "ports", "entries"}
        while missing:
            message = await self._message()
            if isinstance(message, parser.OFPSwitchFeatures):
                switch, tables = message.datapath_id, message.n_tables
                missing.discard("features")
            elif isinstance(message, parser.OFPPortDescStatsReply):
                ports += [wire.port_state(0, each) for each in message.body]
                if len(ports) > MOST_PORTS:
                    raise CutOff(f"{self.peer} lists more than {MOST_PORTS} ports; its connection is ended")
                if not message.flags & ofp.OFPMPF_REPLY_MORE:
                    missing.discard("ports")
            elif isinstance(message, parser.OFPFlowStatsReply):
                found |= {each.entry.key: each.entry for each in message.body}
                if not message.flags & ofp.OFPMPF_REPLY_MORE:
                    missing.discard("entries")
        if not switch:
            raise SwitchLost(f"{self.peer} has datapath id 0, which is not valid")
        known = [replace(each, port=Port(switch, each.port.number)) for each in ports if each is not None]
        self.joined = Joined(switch, known, {}, tables)  # a hundred thousand entries are not kept
        return self.joined._replace(entries=found)

    async def _message(self, *, first: bool = False) -> Any:
        """Return the next message, parsed by os-ken; those for the connection alone are dealt with here."""
        while True:
            data = await self._bytes(first=first)
            self._heard_s = asyncio.get_running_loop().time()
            kind, xid = data[1], int.from_bytes(data[4:8], "big")
            if first:
                return None
            if kind == ofp.OFPT_ECHO_REQUEST:
                self._too_much = True
                self._write(wire.echo_reply(data[HEADER_BYTES:], xid))
            elif kind == ofp.OFPT_PACKET_IN:
                if (frame := wire.frame_in(data)) is not None:
                    return frame
                self._too_much = True
            elif wire.is_of_no_interest(data):
                self._too_much |= not self._unasked.take(self._heard_s)
            elif (message := await self._read_message(data, xid)) is not None:
                return message

    async def _read_message(self, data: bytes, xid: int) -> Any | None:
        """Return a message for `serve` or `join`; None where it was a reply, or is dropped."""
        kind = data[1]
        is_answer, is_asked = kind in ANSWERS and self.joined is not None, self._answers.is_asked(xid)
        if not is_asked and not self._unasked.take(self._heard_s):
            self._too_much = True
        if self.joined is None and kind == ofp.OFPT_MULTIPART_REPLY:
            self._listed += len(data)
            if self._listed > MOST_ANSWER:
                raise CutOff(f"{self.peer} lists too many ports and entries; its connection is ended")
        try:
            check_list(data)
            if is_answer and not is_asked:  # it is late, or was not requested
                return None
            message = await self._entries(data) if wire.lists_entries(data) else wire.read(data)
        except NotNeeded as why:
            raise self._cut_off(why) from None
        except Malformed as why:
            self._too_much = True
            self._lines.warning(
                self.key, "switch %s sends a message that cannot be read: %s", self._name, why
            )
            self._answers.refused(xid, f"switch {self._name} answers with a message that cannot be read")
            return None
        if isinstance(message, parser.OFPErrorMsg):
            return self._error(message, xid)
        if is_answer and self._answers.part(xid, message, len(data), more=wire.has_more(message)):
            return None
        return message

    async def _entries(self, data: bytes) -> Any:
        """Return a list of entries as os-ken has it, read in turns with others; there can be a thousand."""
        check(data)
        found: list[Counted] = []
        for each in listed_entries(data):
            found.append(each)
            if len(found) % ENTRIES_OF_A_TURN == 0:
                await self._turn()
        return wire.entries_reply(data, found)

    def _error(self, message: parser.OFPErrorMsg, xid: int) -> RefusedEntry | None:
        """Return the entry that an error refuses; None where the error is about something else."""
        cookie = wire.refused_cookie(message)
        if cookie is not None and kind_of(cookie) == Kind.MPTCP:
            return RefusedEntry(cookie)
        error = f"an error of type {message.type}, code {message.code}"
        if self._answers.refused(xid, f"switch {self._name} answers with {error}"):
            return None
        self._lines.warning(self.key, "switch %s sends %s", self._name, error)
        entry = self._outgoing.refused(xid)
        return RefusedEntry(entry.cookie, entry) if entry is not None else None

    async def _bytes(self, *, first: bool) -> bytes:
        """Return the next message whole; many may have come at once."""
        await self._turn()
        while len(self._unread) - self._at < HEADER_BYTES:
            await self._read()
        try:
            length = check_head(self._unread[self._at : self._at + HEADER_BYTES], first=first)
        except NotNeeded as why:
            raise self._cut_off(why) from None
        while len(self._unread) - self._at < length:
            await self._read()
        self._at += length
        return self._unread[self._at - length : self._at]

    def _cut_off(self, why: NotNeeded) -> CutOff:
        who = f"switch {self._name}" if self.joined else self.peer
        return CutOff(f"{who} {why}; its connection is ended")

    async def _turn(self) -> None:
        """Give way to others when this turn is over; raises SwitchLost where the connection was given up."""
        loop = asyncio.get_running_loop()
        if loop.time() - self._began_s > TURN_S:
            await asyncio.sleep(REST_S if self._too_much else 0)
            self._began_s, self._too_much = loop.time(), False
        if not self.is_open:
            raise SwitchLost(f"the connection of switch {self._name} has ended")

    def _write(self, data: bytes) -> None:
        """Write; gives the connection up where the switch does not read."""
        if not self.is_open:  # asyncio would have a line in the log for each
            return
        self._writer.write(data)
        if self._writer.transport.get_write_buffer_size() > MOST_WAITING:
            why = "switch %s does not read our messages; its connection is ended"
            self._lines.warning(self.key, why, self._name)
            self.close()

    async def _read(self) -> None:
        try:
            more = await self._reader.read(MOST_MESSAGE)
        except OSError:
            more = b""
        if not more:
            raise SwitchLost(f"the connection of switch {self._name} has ended")
        self._unread, self._at = self._unread[self._at :] + more, 0

    async def _watch(self, answers: Callable[[float], None]) -> None:
        """Send echo requests for ever, to measure the response time; end a connection that is silent."""
        loop = asyncio.get_running_loop()
        for wait_s in chain(FIRST_S, repeat(ASK_EVERY_S)):
            asked_s = loop.time()
            try:
                await self._asked(wire.echo, parser.OFPEchoReply)
                answers(loop.time() - asked_s)
            except SwitchLost:
                if not self.is_open:  # in Python 3.11 this may have come instead of being cancelled
                    return
                if loop.time() - self._heard_s > DEAD_S:
                    break
            await asyncio.sleep(wait_s)
        why = "switch %s has been silent for %g s; its connection is ended"
        self._lines.warning(self.key, why, self._name, DEAD_S)
        self.close()

    @property
    def _name(self) -> str:
        return f"{self.joined.switch:x}" if self.joined else self.peer
