"""Files whose names differ only in case, at a destination that may take them for one."""

import posixpath
from functools import partial

from mpx.endpoint import Endpoint
from mpx.errors import DestinationError, MpxError
from mpx.insist import Insistent
from mpx.listed_names import folded


class FoldedNames:
    """Finds out whether a destination keeps such names apart, from what it lists once the first is there."""

    def __init__(self, end: Endpoint, asking: Insistent) -> None:
        self._end = end
        self._asking = asking
        self._keeps_apart: dict[str, bool] = {}  # by folder

    def conflict(self, target: str) -> MpxError | None:
        """Return the error of a name that the destination takes for another that came before; else None."""
        found = self._asking.ask(partial(self._end.stats, [target], follow=False))[0]
        if found is None:
            return None
        if isinstance(found, MpxError):
            return found
        folder = posixpath.dirname(target)
        if folder not in self._keeps_apart:
            try:
                self._keeps_apart[folder] = self._are_two(folder, posixpath.basename(target))
            except MpxError as error:
                return error
        if self._keeps_apart[folder]:
            return None
        return DestinationError(
            f"cannot write {target}: the destination takes it for another file of this copy, whose name "
            "differs only in case; rename one of them, or copy them into folders apart"
        )

    def _are_two(self, folder: str, name: str) -> bool:
        """Tell whether the name is listed, and beside it another that differs only in case."""
        alike = {other for other, _ in self._asking.entries(folder) if folded(other) == folded(name)}
        return name in alike and len(alike) > 1
