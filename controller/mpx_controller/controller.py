"""The operations of the interfaces (REST and XML-RPC); switches have confirmed them before the answer."""

import asyncio
import ipaddress
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path as File

from mpx.units import counted
from mpx_controller.config import Config, OpenFlow, read_capacities
from mpx_controller.cookies import Kind, cookie
from mpx_controller.errors import NoPath, NotYours, Refused
from mpx_controller.events import Event, Listeners
from mpx_controller.flows import Counted, Messages
from mpx_controller.graph import Link
from mpx_controller.host_search import HostSearch
from mpx_controller.keyed_lock import KeyedLock
from mpx_controller.mptcp.multipath_tcp import MultipathTcp
from mpx_controller.mptcp.segment import FourTuple
from mpx_controller.mptcp.subflow import Subflow
from mpx_controller.network.network import Network
from mpx_controller.networks import Networks
from mpx_controller.openflow import TOGETHER_S, Allowed, Switches
from mpx_controller.path_sets import reasons, usage
from mpx_controller.path_sets.path_set import PathSet, StreamKey
from mpx_controller.path_sets.selection import SELECTORS
from mpx_controller.path_sets.sets import PathSets
from mpx_controller.pending_replies import SwitchLost
from mpx_controller.state_file import read_state, state_text, write_whole

SAVED_EVERY_S = 1.0
CAPACITIES_EVERY_S = 1.0
EVERYBODY = ipaddress.ip_address("255.255.255.255")
COUNTED_EACH = 0.25  # of a lease
HOSTS_EVERY_S = 60.0  # how often silent hosts are asked for
SETS_AT_ONCE = 32  # affected sets that are rerouted before other tasks run

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Caller:
    """A caller, and whether it may have paths of a host with an address."""

    owner: str
    may_ask_for: Callable[[str], bool]


class Controller:
    """Joins the network, its path sets and the switches.

    All of it runs in the event loop of one thread, so that no attribute needs a lock but those that say so.
    """

    def __init__(self, config: Config, secret: bytes) -> None:
        now_s = asyncio.get_running_loop().time()
        self.config = config
        self.network = Network(config.bands, secret, now_s, forwarding=config.forwarding.on)
        select = SELECTORS[config.path_sets.selection]
        self.sets = PathSets(self.network, config.bands, config.limits, select)
        self.mptcp = MultipathTcp(self.network, config.bands, select) if config.spreads_mptcp else None
        self.switches = Switches(
            self.network,
            self.mptcp,
            who_may_connect(config.openflow),
            self._network_changed,
            self._set_refused,
        )
        self._refused: set[int] = set()  # path sets with entries that switches have refused
        self._placing = KeyedLock()  # streams that are being placed, across awaits
        self.listeners = Listeners()
        self._graph = self._graph_before = self.network.graph
        self._affected: dict[int, None] = {}  # path sets to be rerouted, in this order
        self._changes: tuple[list[Link], list[Link]] = [], []  # the reason: links that were lost, and found
        self._moves = 0  # of hosts, that path sets have followed
        self._search = HostSearch(self.network, self.switches.send)
        self._counting = asyncio.Lock()  # one answer of `flows` at a time
        self._unsaved = False
        self._not_saved = ""  # why the state could not be saved the last time
        self._subflows_saved: Mapping[FourTuple, Subflow] = {}
        self._capacities_at: float | None = None
        if config.state is not None and config.state.exists():
            self._restore(config.state, now_s)

    async def keep(self) -> None:
        """Run all periodic tasks, until it is cancelled."""
        await asyncio.gather(
            self.switches.keep(),
            self._keep_leases(),
            self._keep_used(),
            self._keep_hosts(),
            self._keep_capacities(),
        )

    async def assign(self, source: str, sink: str, count: int, caller: Caller) -> PathSet:
        """Return a new path set; raises Refused."""
        if not (caller.may_ask_for(source) or caller.may_ask_for(sink)):
            raise NotYours(
                f"{caller.owner} may request paths of its own address only, not {source} to {sink}"
            )
        _check_pair(source, sink)
        for address in (source, sink):
            await self._search.look_for(address, caller.owner)
        made = self.sets.assign(source, sink, count, caller.owner, self._now())
        why = reasons.why_these(made, self.config.path_sets.selection, count)
        self._note(
            made, f"assigned {counted(len(made.paths), 'path')}, {counted(made.streams, 'stream')}: {why}"
        )
        for place, path in enumerate(made.paths):
            self._log(made, reasons.why_so_many(made, place, self.sets.bytes_per_stream(path.path)))
        return made

    async def place(
        self, number: int, keys: list[StreamKey], owner: str | None, path: int | None = None
    ) -> list[int]:
        """Put streams on paths and return which, when all switches there have confirmed; raises Refused."""
        async with self._placing.on((number, key) for key in keys):
            before = self.sets.get(number, owner).placed
            places, messages = self.sets.place(number, keys, owner, self._now(), path)
            self._unsaved = True
            try:
                await self._done(messages, self.sets.switches_of(number, keys) & self.network.connected)
                self.sets.check_held(number, keys)
            except NoPath:
                self.switches.send(self.sets.take_back(number, keys, before, self._now()))
                self._unsaved = True
                self._set_refused(number)  # also on the path where it was before, perhaps
                raise
        if (known := self.sets.all.get(number)) is not None:
            paths = self.sets.current_paths(number)
            now = {key: paths[key] for key in keys if key in paths}
            self._log(known, f"placed {reasons.where_they_are(known, now)}")
        return places

    async def remove_streams(self, number: int, keys: Iterable[StreamKey], owner: str | None) -> str | None:
        """Remove streams; return why some of their entries may be left, else None. Raises Refused."""
        messages = self.sets.remove_streams(number, keys, owner)
        self._unsaved = True
        return await self._gone(messages)

    async def release(self, number: int, owner: str | None) -> str | None:
        """Release a path set; return why some of its entries may be left, else None. Raises Refused."""
        known = self.sets.get(number, owner)
        messages = self.sets.release(number, owner)
        self._note(known, "released")
        return await self._gone(messages)

    def renew(self, number: int, owner: str | None) -> PathSet:
        """Renew the lease of a path set; raises Refused."""
        self._unsaved = True
        return self.sets.renew(number, owner, self._now())

    async def flows(
        self, number: int, owner: str | None
    ) -> tuple[PathSet, dict[int, list[Counted]], list[int]]:
        """Return a path set, the entries that switches hold for it, and those that cannot be asked now.

        Raises Refused. One set after the other: an answer can be thousands of entries.
        """
        async with self._counting:
            known = self.sets.get(number, owner)
            switches = sorted(self.sets.switches_of(number))
            try:
                found = await self.switches.counted(cookie(Kind.PATH_SET, number), switches)
            except SwitchLost as lost:
                raise NoPath(f"{lost}; try again") from None
        return known, found, [switch for switch in switches if switch not in found]

    def lease_left_s(self, known: PathSet) -> float:
        """Return the rest of the lease of a path set, in seconds."""
        return max(0.0, known.expires_s - self._now())

    def close(self) -> None:
        """Save the state, and end all connections."""
        self._save()
        self.switches.close()

    # --- what follows --------------------------------------------------------------------------------

    async def _done(self, messages: Messages, others: frozenset[int] = frozenset()) -> None:
        """Send messages, and wait until these switches and `others` have confirmed; raises NoPath."""
        try:
            await self._confirmed(messages, others)
        except SwitchLost as lost:
            raise NoPath(f"{lost}; try again") from None

    async def _gone(self, messages: Messages) -> str | None:
        """Send removals, and wait for the switches; return a note where one has not confirmed."""
        try:
            await self._confirmed(messages)
        except SwitchLost as lost:
            return f"released, but a switch may keep entries until it answers or connects again: {lost}"
        return None

    async def _confirmed(self, messages: Messages, others: frozenset[int] = frozenset()) -> None:
        self.switches.send(messages)
        await self.switches.confirmed(others.union(switch for switch, _ in messages))

    def _network_changed(self) -> None:
        self.switches.send(self.network.ask_stray(self._used_hosts, self._now()))
        if self.mptcp is not None:
            self.switches.send(self.mptcp.network_changed(self._now()))
        if self.network.graph is self._graph:
            self._follow_hosts()
            return
        waited = self._affected
        if not waited:
            self._graph_before = self._graph
        self._graph = self.network.graph
        self._changes = reasons.changes(self._graph_before, self._graph)
        self._affected = dict.fromkeys((*self.sets.affected(self._now()), *waited))
        if not waited:  # else `_reroute_some` is scheduled already
            self._reroute_some()

    def _reroute_some(self) -> None:
        """Reroute some of the affected path sets, and schedule the next."""
        numbers = list(self._affected)[:SETS_AT_ONCE]
        for number in numbers:
            del self._affected[number]
        if self._affected:
            asyncio.get_running_loop().call_soon(self._reroute_some)
        sets = self.sets.all
        was = {number: self.sets.current_paths(number) for number in numbers if number in sets}
        self.switches.send(self.sets.reroute(self._now(), numbers))
        if self.network.left_alone:  # after a restart: the network is still being found
            return
        for number, paths in was.items():
            known = sets[number]
            why = reasons.why_moved(known, paths, self.sets.current_paths(number), *self._changes)
            if why:
                self._note(known, f"rerouted: {why}")

    def _set_refused(self, number: int) -> None:
        if not self._refused:  # others of the same change follow soon
            asyncio.get_running_loop().call_later(TOGETHER_S, self._route_around)
        self._refused.add(number)

    def _route_around(self) -> None:
        """Route streams around switches that refused them when they were moved."""
        refused, self._refused = self._refused, set()
        for number in refused:
            keys, messages = self.sets.route_around(number, self._placing.busy, self._now())
            self.switches.send(messages)
            if keys:
                self._note_where(number, keys, "as a switch has refused their entries")

    def _ask_again(self) -> None:
        asked, messages = self.sets.ask_again(self._now())
        self.switches.send(messages)
        for number, keys in asked.items():
            self._note_where(number, keys, "as a switch that had refused their entries is tried again")

    def _note_where(self, number: int, keys: Iterable[StreamKey], why: str) -> None:
        known, paths = self.sets.get(number), self.sets.current_paths(number)
        where = reasons.where_they_are(known, {key: paths[key] for key in keys})
        self._note(known, f"rerouted: {where}, {why}")

    def _follow_hosts(self) -> None:
        if self.network.hosts.moves == self._moves:
            return
        self._moves = self.network.hosts.moves
        moved, messages = self.sets.follow()
        self.switches.send(messages)
        for number in moved:
            self._note(self.sets.get(number), "rerouted: a host has moved")

    def _log(self, known: PathSet, what: str) -> None:
        ends = known.ends
        log.info("path set %d of %s, %s to %s: %s", known.number, known.owner, ends.source, ends.sink, what)

    def _note(self, known: PathSet, what: str) -> None:
        self._log(known, what)
        self._unsaved = True
        self.listeners.tell(Event(known.number, known.owner, what))

    async def _keep_leases(self) -> None:
        while True:
            await asyncio.sleep(SAVED_EVERY_S)
            before = self.sets.all
            ended, messages = self.sets.expire(self._now())
            self.switches.send(messages)
            for number in ended:
                self._note(before[number], "expired")
            self._ask_again()
            if self.mptcp is not None:
                self.switches.send(self.mptcp.expire(self._now()))
                self._unsaved |= self.mptcp.subflows != self._subflows_saved
            self._save()

    async def _keep_used(self) -> None:
        """Renew the leases of path sets whose streams carry data."""
        before: Mapping[usage.Counter, int] = {}
        while True:
            await asyncio.sleep(COUNTED_EACH * self.config.path_sets.lease_s)
            now = await self._counters()
            numbers = usage.used(before, now)
            self.sets.used(numbers, self._now())
            self._unsaved |= bool(numbers)
            before = now

    async def _keep_hosts(self) -> None:
        """Forget hosts that are silent, but not those of path sets and subflows."""
        while True:
            await asyncio.sleep(HOSTS_EVERY_S)
            known = len(self.network.hosts.all)
            self.switches.send(self.network.forget_silent_hosts(self._used_hosts(), self._now()))
            self._unsaved |= len(self.network.hosts.all) != known

    def _used_hosts(self) -> set[str]:
        """Return the hardware addresses of the hosts of path sets and subflows."""
        pairs = [known.hardware for known in self.sets.all.values() if known.hardware is not None]
        if self.mptcp is not None:
            pairs += [known.hardware for known in self.mptcp.subflows.values()]
        return {hardware for pair in pairs for hardware in pair}

    async def _counters(self) -> dict[usage.Counter, int]:
        """Return the bytes of each path set at the switch of its source, or else of its sink."""
        asked: dict[tuple[int, int], usage.Counter] = {}
        for number, known in self.sets.all.items():
            ends = (known.ends.source_port.switch, known.ends.sink_port.switch)
            at = next((switch for switch in ends if switch in self.network.connected), None)
            if known.placed and at is not None:
                asked[cookie(Kind.PATH_SET, number), at] = usage.Counter(number, at)
        totals = await self.switches.totals(asked)
        return {asked[ends]: total.bytes for ends, total in totals.items()}

    async def _keep_capacities(self) -> None:
        file = self.config.links.capacities
        reported = ""
        while file is not None:
            try:
                changed_at = file.stat().st_mtime
                if changed_at != self._capacities_at:
                    self.network.rates_changed(*read_capacities(file))
                    self._capacities_at = changed_at
            except Exception as error:  # the file may be missing or half written: the last one is kept
                if str(error) != reported:
                    reported = str(error)
                    known = self._capacities_at is not None
                    kept = "the last ones are kept" if known else "links have links.default_bps"
                    log.warning("cannot use the file of capacities: %s; %s", reported, kept)
            await asyncio.sleep(CAPACITIES_EVERY_S)

    def _save(self) -> None:
        if self.config.state is None or not self._unsaved:
            return
        self._unsaved = False
        text = state_text(
            self.sets.all.values(), self.sets.last, self.network.hosts.all, self._now(), self.mptcp
        )
        self._subflows_saved = self.mptcp.subflows if self.mptcp is not None else {}
        before, self._not_saved = self._not_saved, ""
        try:
            write_whole(self.config.state, text)
        except OSError as error:
            self._unsaved, self._not_saved = True, str(error)
            if self._not_saved != before:  # saving is tried each second
                log.warning("cannot save the state: %s", error)

    def _restore(self, file: File, now_s: float) -> None:
        try:
            state = read_state(file.read_text(), now_s)
        except (OSError, ValueError) as error:
            log.warning("cannot use the state in %s: %s", file, error)
            return
        self.network.hosts.restore(state.hosts, now_s)
        self.sets.restore(state.sets, state.last)
        if self.mptcp is not None and state.mptcp is not None:
            self.mptcp.restore(*state.mptcp)
        log.info("%d path sets and %d hosts were restored", len(state.sets), len(state.hosts))

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


def who_may_connect(reported: OpenFlow) -> Allowed:
    """Return who may connect as a switch."""
    return Allowed(
        frozenset(reported.switches) if reported.switches is not None else None,
        Networks(reported.allow_from) if reported.insecure else None,
    )


def _check_pair(source: str, sink: str) -> None:
    """Raise Refused unless these can be the addresses of two hosts that talk to each other."""
    one, other = (ipaddress.ip_address(address) for address in (source, sink))
    if one.version != other.version:
        raise Refused(f"{source} and {sink} are addresses of different families")
    if one == other:
        raise Refused(f"source and sink are the same address, {source}")
    for each in (one, other):
        no_host = each.is_multicast or each.is_unspecified or each.is_loopback or each == EVERYBODY
        stands_for_four = each.version == 6 and not int(each) >> 48
        if no_host or stands_for_four or getattr(each, "scope_id", None):
            raise Refused(f"{each} is not the address of a host")
