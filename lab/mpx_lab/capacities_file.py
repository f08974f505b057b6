"""Keeps the file of capacities, which a lab gives its controller, up to date with its links."""

from mpx_lab import state
from mpx_lab.capacities import CAPACITIES, capacities_text
from mpx_lab.emulator.running import running_link


def rewrite_capacities(lab_id: str) -> None:
    """Replace the file; does nothing where the lab is gone. Raises LinkError where a link has ended.

    To be called after every change of a link. Of two at once the later one writes both changes.
    """
    with state.locked(lab_id):
        there = state.load(lab_id)
        if there is None or not there.topology.switches:
            return
        folder, topology = state.folder_of(lab_id), there.topology
        shapes = {
            link.name: running_link(folder, link.name).stats().a_to_b.shape
            for link in topology.links
            if topology.emulated(link)
        }
        fresh = folder / f"{CAPACITIES}.new"
        fresh.write_text(capacities_text(topology, shapes))
        fresh.chmod(0o644)  # a controller need not be root
        fresh.replace(folder / CAPACITIES)
