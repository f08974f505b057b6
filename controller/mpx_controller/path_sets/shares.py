"""The max-min fair shares of paths that share links."""

from collections.abc import Sequence

from mpx_controller.graph import Link, Path


def shares_bps(paths: Sequence[Path]) -> list[float]:
    """Return for each path its max-min fair share: none can have more without one that has less losing some.

    All grow together until a link is full; the paths over it stop, the others go on.
    A path without links gets infinitely much.
    """
    shares = [float("inf") if not path else 0.0 for path in paths]
    users: dict[Link, list[int]] = {}
    for index, path in enumerate(paths):
        for link in path:
            users.setdefault(link, []).append(index)
    on = list(users.values())  # for each link: its paths that still grow
    room = [link.rate_bps for link in users]
    full = [1e-9 * link.rate_bps for link in users]
    rising = {index for index, path in enumerate(paths) if path}
    while rising:
        step = min(left / len(sharing) for left, sharing in zip(room, on, strict=True) if sharing)
        for index in rising:
            shares[index] += step
        room = [left - step * len(sharing) for left, sharing in zip(room, on, strict=True)]
        for left, least, sharing in zip(room, full, on, strict=True):
            if left <= least:
                rising.difference_update(sharing)
        on = [[index for index in sharing if index in rising] for sharing in on]
    return shares


def bottleneck_groups(paths: Sequence[Path]) -> list[int]:
    """Return for each path the number of its group: paths that share a link which limits them are one.

    A link limits them where its rate is less than what those that share it could carry otherwise. A tuner
    serves one group, as a change of one path would be taken for a result of the other.
    """
    group = list(range(len(paths)))
    narrow = [min((link.rate_bps for link in path), default=float("inf")) for path in paths]
    for link in {link for path in paths for link in path}:
        sharing = [index for index, path in enumerate(paths) if link in path]
        if len(sharing) > 1 and link.rate_bps < sum(narrow[index] for index in sharing):
            merged = {group[index] for index in sharing}
            group = [min(merged) if each in merged else each for each in group]
    order = {each: number for number, each in enumerate(dict.fromkeys(group))}
    return [order[each] for each in group]
