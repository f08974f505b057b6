"""The connections of switches: their messages go to the network, and its messages to them."""

import asyncio
import contextlib
import ipaddress
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from mpx.engine.token_bucket import TokenBucket
from mpx_controller.channel import Channel, Joined, RefusedEntry, SwitchEvents
from mpx_controller.cookies import Kind, kind_of, number_of
from mpx_controller.flows import Counted, Gone, Message, Messages, Total
from mpx_controller.frame_budget import ALL_BURST, ALL_RATE, FrameBudget
from mpx_controller.graph import Port
from mpx_controller.log_limit import LogLimit
from mpx_controller.mptcp.multipath_tcp import MultipathTcp
from mpx_controller.mptcp.segment import is_tcp
from mpx_controller.network.network import Network
from mpx_controller.network.ports import PortState
from mpx_controller.networks import Networks
from mpx_controller.pending_replies import CutOff, SwitchLost

MOST_CONNECTIONS = 1024
MOST_JOINING = 128  # connections of one address that are not identified yet
TOGETHER_S = 0.002  # changes within so long take effect together

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Allowed:
    """Who may connect: datapath ids, and from where; None: all. Over loopback all of this host may."""

    switches: frozenset[int] | None = None
    places: Networks | None = None

    def at(self, address: str) -> bool:
        """Whether switches at an address may connect."""
        return self.places is None or ipaddress.ip_address(address).is_loopback or self.places(address)

    def is_one(self, switch: int) -> bool:
        """Whether a switch with a datapath id may connect."""
        return self.switches is None or switch in self.switches


class Switches:
    """The connections of all switches that are `allowed`. `mptcp`: None where it is off.

    `refused` is given the number of a path set for each entry of it that a switch does not take.
    """

    def __init__(
        self,
        network: Network,
        mptcp: MultipathTcp | None = None,
        allowed: Allowed = Allowed(),
        changed: Callable[[], None] = lambda: None,
        refused: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._network, self._mptcp, self._allowed, self._changed = network, mptcp, allowed, changed
        self._set_refused = refused
        self._channels: dict[int, Channel] = {}
        self._lines = LogLimit(log)
        self._woken = asyncio.Event()  # there is something to do for `keep`
        self._open = 0
        self._joining: Counter[str] = Counter()
        self._budget = TokenBucket(ALL_RATE, ALL_BURST)
        self._budgets: dict[int, FrameBudget] = {}
        self.frames_in = 0
        self.frames_dropped = 0

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection of a switch until it ends."""
        channel = Channel(reader, writer, self._lines)
        self._open += 1
        try:
            with channel.apart():
                await self._serve(channel)
        except CutOff as why:
            self._lines.warning(channel.key, "%s", why)
        except SwitchLost as lost:
            log.info("%s", lost)
        finally:
            self._open -= 1
            channel.close()
            joined_as = channel.joined.switch if channel.joined else None
            if joined_as is not None and self._channels.get(joined_as) is channel:
                del self._channels[joined_as], self._budgets[joined_as]
                self._network.switch_down(joined_as, self._now())
                self._changed()
                self._woken.set()

    def complain(self, peer: str, text: str, *values: object) -> None:
        """Write a line about a peer to the log, unless there are too many of it."""
        self._lines.warning(peer, text, *values)

    async def keep(self) -> None:
        """Call `Network.tick` when it is due, for ever."""
        while True:
            now = self._now()
            if self._network.next_s() <= now:
                self.send(self._network.tick(now))
                self._changed()
            self._woken.clear()
            wait_s = max(0.0, self._network.next_s() - self._now())
            if wait_s > 0:
                try:
                    await asyncio.wait_for(self._woken.wait(), wait_s)
                except TimeoutError:
                    continue
                await asyncio.sleep(TOGETHER_S)
            else:
                await asyncio.sleep(TOGETHER_S)

    def send(self, messages: Messages) -> None:
        """Send to those that are connected, in order."""
        by_switch: dict[int, list[Message]] = defaultdict(list)
        for switch, message in messages:
            by_switch[switch].append(message)
        for switch, some in by_switch.items():
            if (channel := self._channels.get(switch)) is not None:
                with contextlib.suppress(SwitchLost), channel.apart():
                    channel.send(some)

    async def confirmed(self, switches: Iterable[int]) -> None:
        """Return when these have done or refused all that was sent; raises SwitchLost."""
        there = [self._channels.get(switch) for switch in set(switches)]
        if None in there:
            raise SwitchLost("a switch of the path is not connected")
        await asyncio.gather(*(channel.confirmed() for channel in there if channel))

    async def totals(self, asked: Iterable[tuple[int, int]]) -> dict[tuple[int, int], Total]:
        """Return what the entries of each (cookie, switch) have counted; without those that do not answer."""
        there = [(cookie, switch, self._channels.get(switch)) for cookie, switch in asked]
        found: dict[tuple[int, int], Total] = {}

        async def ask(cookie: int, switch: int, channel: Channel) -> None:
            with contextlib.suppress(SwitchLost):
                found[cookie, switch] = await channel.total(cookie)

        await asyncio.gather(*(ask(cookie, switch, channel) for cookie, switch, channel in there if channel))
        return found

    async def counted(self, cookie: int, switches: Iterable[int]) -> dict[int, list[Counted]]:
        """Return the entries of a cookie in each switch, with what they have counted.

        Those that are not connected are left out; raises SwitchLost where one does not answer.
        """
        there = [(switch, self._channels[switch]) for switch in switches if switch in self._channels]
        answers = await asyncio.gather(*(channel.counted(cookie) for _, channel in there))
        return {switch: answer for (switch, _), answer in zip(there, answers, strict=True)}

    def close(self) -> None:
        """End all connections."""
        for channel in list(self._channels.values()):
            channel.close()
        self._lines.close()

    async def _serve(self, channel: Channel) -> None:
        if self._open > MOST_CONNECTIONS:
            raise SwitchLost(f"{channel.peer} exceeds the maximum of connections")
        if not self._allowed.at(channel.address):
            raise SwitchLost(f"{channel.peer} is not among the addresses of openflow.allow_from")
        joined = await self._joined(channel)
        if not self._allowed.is_one(joined.switch):
            raise SwitchLost(
                f"{channel.peer} is switch {joined.switch:x}, which openflow.switches does not list"
            )
        if joined.tables < self._network.tables:
            why = "switch %x has %d tables and needs %d, so it is not used; see forwarding.table and .on"
            needed = self._network.tables
            self._lines.warning(channel.key, why, joined.switch, joined.tables, needed)
            raise SwitchLost(f"{channel.peer} has too few tables")
        while (before := self._channels.get(joined.switch)) is not None and before.is_open:
            if await before.is_there():
                raise SwitchLost(
                    f"{channel.peer} claims to be switch {joined.switch:x}, which is connected already"
                )
            before.close()
        self._channels[joined.switch] = channel
        self._budgets[joined.switch] = FrameBudget(self._budget)
        log.info("switch %x is connected, with %d ports", joined.switch, len(joined.ports))
        self.send(self._network.switch_up(*joined[:3], self._now()))
        self._changed()
        self._woken.set()
        events = SwitchEvents(
            self._frame_in,
            self._port_changed,
            self._entry_gone,
            self._network.switch_answers,
            self._refused,
        )
        await channel.serve(events)

    async def _joined(self, channel: Channel) -> Joined:
        """Return the identity of a connection; raises SwitchLost, also for too many that have none yet."""
        address = channel.address
        if self._joining[address] >= MOST_JOINING:
            raise SwitchLost(f"{channel.peer} exceeds the maximum of connections that are not identified")
        self._joining[address] += 1
        try:
            return await channel.join()
        finally:
            self._joining[address] -= 1
            if not self._joining[address]:
                del self._joining[address]

    def _frame_in(self, port: Port, data: bytes) -> bool:
        self.frames_in += 1
        now_s = self._now()
        if not self._budgets[port.switch].allows(port.number, data, now_s):
            self.frames_dropped += 1
            return False
        if self._mptcp is not None and is_tcp(data):
            self.send(self._mptcp.frame_in(port, data, now_s))
            return True
        self.send(self._network.frame_in(port, data, now_s))
        self._woken.set()
        return True

    def _port_changed(self, state: PortState, gone: bool) -> None:
        if gone:
            self._network.port_gone(state.port)
        else:
            self.send(self._network.port_changed(state, self._now()))
        self._woken.set()

    def _entry_gone(self, switch: int, gone: Gone) -> None:
        if self._mptcp is not None and kind_of(gone.cookie) == Kind.MPTCP:
            self.send(self._mptcp.entry_gone(gone, self._now()))
        self.send(self._network.entry_gone(switch, gone))

    def _refused(self, switch: int, refused: RefusedEntry) -> None:
        if refused.entry is not None:
            self._network.refused(switch, refused.entry)
            self._set_refused(number_of(refused.entry.cookie))
        elif self._mptcp is not None:
            self.send(self._mptcp.refused(switch, refused.cookie, self._now()))

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
