"""`mpx history`: what is remembered of earlier copies, and forgetting it."""

from datetime import UTC, datetime

import click

from mpx.errors import UsageError
from mpx.text import shown
from mpx.units import counted, format_duration, format_rate, format_size


@click.command("history")
@click.option("--forget", is_flag=True, help="forget all of it")
def history_command(forget: bool) -> None:
    """Show what copies remember of paths and servers.

    A line for each of the last copies on a path, with the number of streams that it settled on, and one for
    each server, with how it takes a login. A copy steps to the number of the last one if the path has room,
    and logs in with fewer round trips where a server is known to take it. It is kept in the state folder
    (MPX_STATE_DIR), for this account alone; neither names of files nor passwords are. `mpx copy --no-history`
    neither uses nor adds to it.
    """
    from mpx.endpoints.ftp import known_servers
    from mpx.history import store

    try:
        if forget:
            count = store.forget() + known_servers.forget()
            click.echo(f"forgotten: {counted(count, 'entry', 'entries')}")
            return
        remembered, servers = store.everything(), known_servers.everything()
    except OSError as error:
        raise UsageError(f"cannot use what is remembered of servers: {error}") from None
    for route, outcome in remembered:
        arrow = f"{route.ours} -> {route.server}" if route.is_upload else f"{route.server} -> {route.ours}"
        window = f", windows of {format_size(round(outcome.window_bytes))}" if outcome.window_bytes else ""
        click.echo(
            shown(
                f"{_when(outcome.when_s)}  {arrow} (port {route.port}, {route.policy}): "
                f"{counted(outcome.streams, 'stream')}, {format_rate(outcome.goodput_bps)}, "
                f"RTT {format_duration(outcome.rtt_s)}{window}"
            )
        )
    for server, seen_s, how in servers:
        click.echo(shown(f"{_when(seen_s)}  server {server}: {how}"))
    if not remembered and not servers:
        click.echo("nothing is remembered")


def _when(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    except (ValueError, OverflowError, OSError):  # of a clock that was wrong
        return "-"
