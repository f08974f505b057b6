"""What is in a folder of a cluster where some of its servers have not listed it.

The library says no more than that, and mostly they have no such folder. So each is asked by itself here, and
any other reason is a refusal: else the files of a server that cannot list its folder would be missed by all.
"""

from typing import Any

from mpx.endpoints.xrootd import meaning
from mpx.endpoints.xrootd.clusters import plain_address
from mpx.endpoints.xrootd.data_server import is_missing
from mpx.endpoints.xrootd.replacing import PREFERS_NAMES, Replacing

_TO_LIST = 0x0400  # kXR_4dirlist


def listed(server: Any, name: str, replacing: Replacing) -> tuple[Any, Any]:
    """Return the status, and what all servers have in a folder; waits for them. `server`: their head."""
    status, located = server.deeplocate(f"*{name}", PREFERS_NAMES | _TO_LIST)  # all that may have it
    if not status.ok:
        return status, None
    refused = f"not all servers of {replacing.head} have listed {name}"
    if status.code != meaning.WHOLE:
        return meaning.Failed(f"{refused}; try again when all can be asked"), None
    found: dict[tuple[Any, ...], Any] = {}  # those of shared storage have the same
    missing, whole = None, None
    for address in sorted({plain_address(each.address): each.address for each in located}.values()):
        status, entries = replacing.at(address).entries(name)
        if status.ok and status.code == meaning.WHOLE:
            whole = status
            found |= {_identity(each): each for each in entries or ()}
        elif is_missing(status):
            missing = status
        else:
            return meaning.Failed(f"{refused}; {address} has not: {meaning.told(status.message)}"), None
    return (missing, None) if whole is None else (whole, found.values())


def _identity(entry: Any) -> tuple[Any, ...]:
    told = entry.statinfo
    return (entry.name, told.size, told.modtime, told.flags) if told else (entry.name,)
