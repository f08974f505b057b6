"""Giving up the files of an interrupted copy: what it has left goes, and what it has put aside comes back.

Where a server renames to no name that is taken, the old file is put aside before the new one gets its name.
"""

from collections.abc import Sequence

from mpx.engine.endpoint import Commit, Endpoint
from mpx.errors import MpxError
from mpx.files.partial_names import aside_name
from mpx.report import no_note
from mpx.transfer.journal_reader import Unfinished


def discard(files: Sequence[Unfinished], end: Endpoint) -> list[tuple[str, str]]:
    """Remove partial files; return what users are to be told, and of which name.

    Raises what keeps one from being removed, and an old file from its name.
    """
    apart = [file for file in files if file.partial != file.final]
    in_place = [file for file in files if file.partial == file.final]
    told = _bring_back(apart, end)
    if end.capabilities.stores_anew:  # each may be the one that was there before
        told += [("left as it is", file.final) for file in in_place]
    else:
        apart += in_place
    for file in apart:
        end.remove(file.partial)
    return told


def _bring_back(files: Sequence[Unfinished], end: Endpoint) -> list[tuple[str, str]]:
    """Give old files their names again that were put aside; one whose successor is there is removed."""
    if not files or end.find_out().is_faithful:  # then renames replace, and nothing is put aside
        return []
    told: list[tuple[str, str]] = []
    asides = {aside_name(file.partial, file.final): file for file in files}
    found: dict[str, Unfinished] = {}
    for (aside, file), info in zip(asides.items(), end.stats(list(asides), follow=False), strict=True):
        if isinstance(info, MpxError):  # it may be there, and only the journal tells of it
            raise info
        if info is not None:
            found[aside] = file
    if not found:
        return []
    finals = end.stats([file.final for file in found.values()], follow=False)
    partials = end.stats([file.partial for file in found.values()], follow=False)
    for (aside, file), final, partial in zip(found.items(), finals, partials, strict=True):
        if isinstance(final, MpxError):
            raise final
        if final is None:
            old = Commit(aside, file.final, None, None, is_synced=True, replaces=False)
            (failed,) = end.commit([old], no_note)
            if failed is not None:
                raise failed
            told.append(("the old file has its name again", file.final))
        elif partial is None:
            end.remove(aside)
        else:
            told.append(("an older file stays, as another one has its name", aside))
    return told
