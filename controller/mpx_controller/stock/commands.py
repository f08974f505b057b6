"""`mpx controller assign`, `run` and `netmgr`: path sets for GridFTP programs without support for them."""

import ipaddress
import json
import os
import random
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from mpx.text import shown
from mpx.units import counted
from mpx_controller.ask import OF_CONTROLLER

if TYPE_CHECKING:
    from mpx_controller.stock.netmgr.mpx_netmgr.client import Client

EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")


def _asking(command: Any) -> Any:
    """Add the options of the controller, and the arguments of a path set."""
    options = (
        click.argument("source", metavar="SOURCE"),
        click.argument("sink", metavar="SINK"),
        click.argument("paths", metavar="PATHS", type=click.IntRange(0, 64)),
        *OF_CONTROLLER,
    )
    for each in reversed(options):
        command = each(command)
    return command


@click.command("assign")
@_asking
@click.option("--json", "as_json", is_flag=True, help="Print the whole answer of the controller as JSON.")
def assign(source: str, sink: str, paths: int, url: str, token_file: Path | None, as_json: bool) -> None:
    """Get a path set of at most PATHS paths (0: as many as help), as `assign_mpath` of Huang does.

    It ends with its lease unless streams are put on it. `mpx controller run` keeps one for a command.
    """
    from mpx.errors import ControllerError
    from mpx_controller.stock.netmgr.mpx_netmgr.client import Unsteered

    try:
        made = _client(url, token_file).assign(*_addresses(source, sink), paths)
    except Unsteered as error:
        raise ControllerError(f"no path set was assigned: {error}") from None
    if as_json:
        click.echo(json.dumps(made.answer))
        return
    try:
        paths_of = [_described(path) for path in made.answer["paths"]]
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ControllerError(f"the controller at {url} describes the paths wrongly ({error!r})") from None
    click.echo(
        f"path set {made.number}: {counted(made.paths, 'path')}, {counted(made.streams, 'stream')}, "
        f"for {made.lease_s:g} s"
    )
    for number, path in enumerate(paths_of):
        click.echo(f"  path {number}: {path}")


@click.command("run", context_settings={"allow_interspersed_args": False})
@_asking
@click.option("--in-turn", is_flag=True, help="Place streams round-robin, not as predicted.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="COMMAND...")
def run(
    source: str,
    sink: str,
    paths: int,
    url: str,
    token_file: Path | None,
    in_turn: bool,
    command: tuple[str, ...],
) -> NoReturn:
    """Run COMMAND, and have its streams from SOURCE to SINK take at most PATHS paths (0: as many as help).

    One of the two is this host. Options stand before SOURCE, and `--` before COMMAND, which is a
    globus-url-copy with `-p {streams}` or `-fast`: {streams} is replaced by the number of streams that are
    predicted. The exit status is that of COMMAND. Without the controller it runs all the same, over one path.

    \b
    mpx controller run 10.0.0.1 10.0.0.2 4 -- \\
        globus-url-copy -p {streams} file:///data/run7 ftp://10.0.0.2:2811/data/run7
    """
    from mpx.errors import MpxError, UsageError
    from mpx_controller.stock.connections import Connections
    from mpx_controller.stock.netmgr.mpx_netmgr.client import Unsteered
    from mpx_controller.stock.netmgr.mpx_netmgr.pair import Pair
    from mpx_controller.stock.netmgr.mpx_netmgr.steering import Steering
    from mpx_controller.stock.ports import RECEIVES, SENDS, StreamRecogniser, chosen_ports
    from mpx_controller.stock.run import NOT_EXECUTABLE, NOT_FOUND, Watch, run_command

    wanted = command[1:] if command[0] == "--" else command
    if not wanted or wanted[0].startswith("-"):
        raise UsageError(
            "options of 'mpx controller run' precede SOURCE, and a command follows PATHS; write for "
            "example: mpx controller run 10.0.0.1 10.0.0.2 4 -- globus-url-copy -p {streams} SRC DST"
        )
    pair = Pair(*_addresses(source, sink))
    we_send = _is_ours(pair.source)
    if not (we_send or _is_ours(pair.sink)):
        raise UsageError(f"neither {source} nor {sink} is an address of this host; one of them must be")
    steering = Steering(_client(url, token_file), paths, in_turn)
    try:
        connections = Connections()
        used = {each.local[1] for each in connections.now()}
    except OSError as error:
        raise MpxError(
            f"cannot see the connections of this host: {error}; as root: modprobe tcp_diag"
        ) from None
    try:
        ephemeral = int(EPHEMERAL.read_text().split()[0])
        ports = chosen_ports(os.environ, SENDS if we_send else RECEIVES, ephemeral, used, random.Random())
    except ValueError as error:
        raise UsageError(str(error)) from None
    failure: Unsteered | None = None
    try:
        count = steering.get(pair, time.monotonic()).streams
    except Unsteered as error:
        complain(f"streams take one path: {error}")
        count, failure = max(1, paths), error
    streams = StreamRecogniser(pair, ports, we_send)
    words = [word.replace("{streams}", str(count)) for word in wanted]
    watch = Watch(steering, streams, connections, complain, failure)
    try:
        code = run_command(words, {**os.environ, **streams.environment}, watch.check)
    except OSError as error:
        complain(f"cannot run {words[0]}: {error.strerror}")
        code = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
    finally:
        steering.release()
    if failure is None and code == 0 and not watch.has_seen:
        complain(
            f"no stream from {source} to {sink} was seen: globus-url-copy needs "
            "-p {streams} or -fast, and a file of several blocks"
        )
    sys.exit(code)


@click.command("netmgr")
def netmgr() -> None:
    """Print the folder of the module for globus-gridftp-server (its net_manager driver).

    \b
    PYTHONPATH=$(mpx controller netmgr) MPX_CONTROLLER=http://127.0.0.1:6680 \\
        globus-gridftp-server -xnetmgr "manager=python;pymod=mpx_netmgr;" ...
    """
    click.echo(Path(__file__).parent / "netmgr")


def _client(url: str, token_file: Path | None) -> "Client":
    from mpx_controller.rest_client import read_token
    from mpx_controller.stock.client import StockClient

    return StockClient(url, read_token(token_file))


def complain(message: str) -> None:
    """Print one line on stderr."""
    click.echo(f"mpx: {shown(' '.join(message.split()))}", err=True)


def _addresses(source: str, sink: str) -> tuple[str, str]:
    """Return addresses of one kind of two hosts, which may be named, of IPv4 if both have them.

    Raises UsageError.
    """
    from mpx.errors import UsageError

    known = [_addresses_of(text) for text in (source, sink)]
    for family in (socket.AF_INET, socket.AF_INET6):
        if all(family in each for each in known):
            return known[0][family], known[1][family]
    raise UsageError(
        f"'{source}' and '{sink}' have no addresses of the same family: {known[0]} and {known[1]}"
    )


def _addresses_of(text: str) -> dict[int, str]:
    """Return the first address of each kind that a host has; raises UsageError."""
    from mpx.errors import UsageError

    try:
        found = socket.getaddrinfo(text, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise UsageError(f"cannot find the address of '{text}': {error}") from None
    return {
        family: str(ipaddress.ip_address(str(where[0]).partition("%")[0]))
        for family, _, _, _, where in reversed(found)
    }


def _is_ours(address: str) -> bool:
    """Whether it is an address of this host: the source address of packets to it is itself."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as going:
            going.connect((address, 9))
            return str(going.getsockname()[0]) == address
    except OSError:
        return False


def _described(path: dict[str, Any]) -> str:
    rate = f"{path['rate_bps'] / 1e6:g} Mbit/s" if path["rate_bps"] is not None else "no limit known"
    streams, switches = counted(path["streams"], "stream"), "-".join(path["switches"])
    return shown(f"{streams}, {rate}, RTT {path['rtt_s'] * 1e3:.1f} ms, {switches}")
