"""The command `mpx lab`: build a lab, run commands in it, change its links, take it down."""

import json
import os
import runpy
import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from mpx.errors import MpxError, UsageError
from mpx.units import parse_duration, parse_rate, parse_size
from mpx_lab import namespace, state
from mpx_lab.dataset.command import dataset_command
from mpx_lab.lab import Lab, require_root, take_down
from mpx_lab.lab_list import found, meant
from mpx_lab.lab_option import lab_option
from mpx_lab.plan import DEFAULT_CONGESTION, parse_controller
from mpx_lab.sigterm import sigterm_ends
from mpx_lab.simulator.command import simulate_command
from mpx_lab.status_text import UNLIMITED, status_lines
from mpx_lab.topologies import TOPOLOGIES, named
from mpx_lab.topology import Topology
from mpx_lab.traffic_command import traffic_command


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.pass_context
def lab(context: click.Context) -> None:
    """Emulate a wide-area network on this machine. Needs root."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
        context.exit(2)


lab.add_command(dataset_command)
lab.add_command(simulate_command)
lab.add_command(traffic_command)


@lab.command("list")
@click.option(
    "--lab", "lab_id", metavar="ID", help="Only this lab; if it was interrupted its remains are removed."
)
def list_command(lab_id: str | None) -> None:
    """List the named topologies, and the labs there are."""
    lines = found() if lab_id is None else [meant(lab_id)]
    for topology in TOPOLOGIES:
        click.echo(f"{topology.name:15} {topology.text}")
    for line in lines:
        click.echo(line)


@lab.command("up")
@click.argument("name", metavar="NAME|FILE.py")
@lab_option
@click.option("--scale", type=float, default=1.0, help="Factor of rates and byte queues; delays stay.")
@click.option(
    "--controller",
    metavar="[tcp:HOST:PORT]",
    is_flag=False,
    flag_value="own",
    help="OpenFlow controller of the switches; without an address the lab runs `mpx controller`.",
)
@click.option("--rest", metavar="URL", help="REST URL of that controller, shown by status.")
@click.option("--xmlrpc", metavar="URL", help="XML-RPC URL of that controller, shown by status.")
def up_command(
    name: str, lab_id: str, scale: float, controller: str | None, rest: str | None, xmlrpc: str | None
) -> None:
    """Build a topology by name, or the one called `topology` in a Python file."""
    require_root()
    if (rest or xmlrpc) and not controller:
        raise UsageError("--rest and --xmlrpc belong to a controller: give --controller tcp:HOST:PORT too")
    chosen = parse_controller(controller, rest, xmlrpc) if controller else None
    topology = _from_file(Path(name)) if name.endswith(".py") else named(name)
    with sigterm_ends():
        running = Lab.up(topology, lab_id, scale=scale, controller=chosen, keep=True)
    if running.replaced:
        click.echo(f"remains of an earlier lab '{lab_id}' have been removed")
    _print_status(running)


@lab.command("status")
@lab_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status_command(lab_id: str, as_json: bool) -> None:
    """Show hosts, addresses and the current state of each link."""
    running = Lab.attach(lab_id)
    if as_json:
        click.echo(json.dumps(running.status(), indent=1))
    else:
        _print_status(running)


@lab.command("exec", context_settings={"allow_interspersed_args": False})
@lab_option
@click.option("--root", "as_root", is_flag=True, help="Stay root instead of the user who called sudo.")
@click.argument("host")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def exec_command(lab_id: str, as_root: bool, host: str, command: tuple[str, ...]) -> NoReturn:
    """Run COMMAND on a host; exit code, standard streams and signals are the command's own.

    Options stand before HOST. Write `--` before a COMMAND. It runs as the user who called sudo.
    """
    if (
        command[0].startswith("-") and command[0] != "--"
    ):  # or the value of an option would be taken for the command
        raise UsageError(
            f"'{command[0]}' stands after the host: options of 'mpx lab exec' stand before it, and before "
            "the command stands '--'; write for example: mpx lab exec --lab ID src -- ping dst"
        )
    there = Lab.attach(lab_id).host(host)
    words = list(command[1:] if command[0] == "--" else command)
    if not words:
        raise UsageError("there is no command to run; write for example: mpx lab exec src -- ping dst")
    uid, gid = (namespace.SAME_USER, namespace.SAME_USER) if as_root else invoking_user(os.environ)
    os.environ["MPX_LAB"] = lab_id
    sys.stdout.flush()
    try:
        namespace.become(
            namespace.RUN_NETNS / there.netns, state.folder_of(lab_id) / "hosts", uid, gid, words
        )
    except OSError as error:
        raise state.CannotRun(f"cannot run '{words[0]}' on {host}", error) from None


@lab.command("link")
@lab_option
@click.argument("name", metavar="LINK")
@click.option("--rate", metavar="RATE|unlimited", help="For example 130Mbit/s.")
@click.option("--delay", metavar="DURATION", help="One way, for example 22.5ms.")
@click.option("--queue", metavar="SIZE|unlimited", help="Bytes (512000, 1MiB) or packets (100p).")
@click.option("--loss", metavar="PERCENT", help="Random loss of frames, for example 0.01%.")
@click.option("--down", is_flag=True, help="Cut the link: both ends lose their carrier.")
@click.option("--up", is_flag=True, help="Restore it.")
def link_command(
    lab_id: str,
    name: str,
    rate: str | None,
    delay: str | None,
    queue: str | None,
    loss: str | None,
    down: bool,
    up: bool,
) -> None:
    """Change a link while it runs, in both directions."""
    changes = parse_changes(rate, delay, queue, loss)
    if not (changes or down or up):
        raise UsageError("nothing to change: give --rate, --delay, --queue, --loss, --down or --up")
    if down and up:
        raise UsageError("a link is either --down or --up")
    link = Lab.attach(lab_id).link(name)
    if changes:
        link.change(**changes)
    if down or up:
        link.set_up(up)


@lab.command("route")
@lab_option
@click.argument("host")
@click.option("--to", metavar="HOST", help="Only for connections to this host.")
@click.option(
    "--congestion", metavar="NAME", default=DEFAULT_CONGESTION, show_default=True, help="cubic, bbr, reno."
)
@click.option(
    "--window",
    metavar="SIZE|off",
    default="off",
    help="Receive window that it advertises; with --to only 65535 or off.",
)
def route_command(lab_id: str, host: str, to: str | None, congestion: str, window: str) -> None:
    """Set congestion control and window of a host's connections; values not given return to the default."""
    window_bytes = None if window == "off" else parse_size(window)
    Lab.attach(lab_id).host(host).set_route(to, congestion, window_bytes)


@lab.command("down")
@lab_option
def down_command(lab_id: str) -> None:
    """Take a lab down with everything that runs in it."""
    took = take_down(lab_id)
    if not took.anything:
        click.echo(f"there is no lab '{lab_id}'")
    elif not took.complete:
        click.echo(f"the lab '{lab_id}' was interrupted; its remains have been removed")


def invoking_user(environment: "os._Environ[str] | dict[str, str]") -> tuple[int, int]:
    """Return user and group of whoever called sudo or pkexec, (-1, -1) for root itself."""
    for user, group in (("SUDO_UID", "SUDO_GID"), ("PKEXEC_UID", None)):
        if environment.get(user, "").isdecimal():
            uid = int(environment[user])
            gid = environment.get(group, "") if group else ""
            return uid, int(gid) if gid.isdecimal() else namespace.group_of(uid)
    return namespace.SAME_USER, namespace.SAME_USER


def parse_changes(
    rate: str | None = None, delay: str | None = None, queue: str | None = None, loss: str | None = None
) -> dict[str, Any]:
    """Return the fields of Shape that the options name; raises UsageError."""
    changes: dict[str, Any] = {}
    if rate is not None:
        changes["rate_bps"] = None if rate == UNLIMITED else round(parse_rate(rate))
    if delay is not None:
        changes["delay_s"] = parse_duration(delay)
    if queue is not None:
        packets = queue.removesuffix("p")
        if queue == UNLIMITED:
            changes |= {"queue_bytes": None, "queue_packets": None}
        elif packets != queue and packets.isdecimal():
            changes["queue_packets"] = int(packets)
        else:
            changes["queue_bytes"] = parse_size(queue)
    if loss is not None:
        changes["loss"] = parse_share(loss)
    return changes


def parse_share(text: str) -> float:
    """Return the share in e.g. `0.01%`, or `0`; raises UsageError unless it is 0% to 100%."""
    try:
        share = float(text.removesuffix("%")) / 100 if text.endswith("%") or text == "0" else -1.0
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise UsageError(f"'{text}' is not a share in percent: write for example 0.01%")
    return share


def _from_file(path: Path) -> Topology:
    try:
        found = runpy.run_path(str(path)).get("topology")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None
    except MpxError as error:
        raise UsageError(f"{path}: {error}") from None
    except Exception as error:  # it is the user's program, which may raise anything
        raise UsageError(f"{path} cannot be run: {type(error).__name__}: {error}") from None
    if not isinstance(found, Topology):
        raise UsageError(f"{path} has no value called 'topology' that is a Topology; see docs/lab.md")
    return found


def _print_status(running: Lab) -> None:
    for line in status_lines(running.status(), running.controller_failure()):
        click.echo(line)
