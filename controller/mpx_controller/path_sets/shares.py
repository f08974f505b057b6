"""What each of several paths gets where they share links."""

from collections.abc import Sequence

from mpx_controller.graph import Link, Path


def shares_bps(paths: Sequence[Path]) -> list[float]:
    """Return for each path its max-min fair share: nobody can have more but from somebody with less.

    All rise together, until a link is full; who is on it stays there, the others go on rising.
    A path without links gets infinitely much.
    """
    shares = [float("inf") if not path else 0.0 for path in paths]
    rising = {index for index, path in enumerate(paths) if path}
    room: dict[Link, float] = {link: link.rate_bps for path in paths for link in path}
    while rising:
        on = {link: sum(link in paths[index] for index in rising) for link in room}
        step = min(room[link] / count for link, count in on.items() if count)
        for link, count in on.items():
            room[link] -= step * count
        for index in rising:
            shares[index] += step
        full = {link for link, count in on.items() if count and room[link] <= 1e-9 * link.rate_bps}
        rising = {index for index in rising if not full.intersection(paths[index])}
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
