"""The entries of each switch, and the removal of others that it held when it connected. Pure.

A switch forwards while no controller is there. So entries that are not wanted are removed in parts, and for
a while after our start a switch that forwards is left alone.
"""

from collections.abc import Iterable, Mapping

from mpx_controller.cookies import Kind, kind_of
from mpx_controller.flows import Entry, Key, Messages, SwitchRules
from mpx_controller.network.forwarding import Bands


class SwitchTables:
    """The rules of all switches. Messages are returned for switches that are connected only."""

    def __init__(self, bands: Bands, *, forwarding: bool) -> None:
        self.connected: set[int] = set()
        self.left_alone: dict[int, Mapping[Key, Entry]] = {}  # with the entries that they hold
        self._bands, self._forwarding = bands, forwarding
        self._rules: dict[int, SwitchRules] = {}
        self._cleared: set[int] = set()  # switches that may hold entries of ours that are not wanted

    @property
    def switches(self) -> list[int]:
        """The switches that have rules."""
        return list(self._rules)

    @property
    def is_clearing(self) -> bool:
        """Whether `clear` has something to remove."""
        return not self._cleared.isdisjoint(self.connected)

    def rules(self, switch: int) -> SwitchRules:
        """Return what a switch is to hold."""
        return self._rules.setdefault(switch, SwitchRules())

    def change(self, switch: int, owner: object, entries: Iterable[Entry]) -> Messages:
        """Set the entries of `owner` in a switch; see SwitchRules.put."""
        changes = self.rules(switch).put(owner, entries)
        return [(switch, change) for change in changes] if switch in self.connected else []

    def forward(self, switch: int, owner: object, entries: Iterable[Entry]) -> Messages:
        """Change entries that forward unassigned traffic; later where the switch is left alone."""
        changes = self.change(switch, owner, entries)
        return changes if switch not in self.left_alone else []

    def reconcile(self, switch: int, found: Mapping[Key, Entry]) -> Messages:
        """Add what is missing in a switch that holds `found`; `clear` removes what is not wanted."""
        changes = self.rules(switch).reconciled(found)
        self._cleared.add(switch)
        return [(switch, change) for change in changes] + self._clear(switch)

    def clear(self) -> Messages:
        """Remove a part of the entries that connected switches held and that are not wanted."""
        return [message for switch in self._cleared & self.connected for message in self._clear(switch)]

    def forwards(self, found: Mapping[Key, Entry]) -> bool:
        """Whether a switch with these entries forwards by them: all frames, or streams of path sets."""
        if self._forwarding:
            return any(key.table == self._bands.second for key in found)
        return any(kind_of(entry.cookie) == Kind.PATH_SET for entry in found.values())

    def forget(self, switch: int) -> None:
        """Forget a switch."""
        self._rules.pop(switch, None)
        self.left_alone.pop(switch, None)
        self._cleared.discard(switch)

    def _clear(self, switch: int) -> Messages:
        removed = self.rules(switch).next_removed()
        if removed is None:
            self._cleared.discard(switch)
        return [(switch, message) for message in removed or ()]
