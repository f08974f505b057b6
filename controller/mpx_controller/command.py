"""`mpx controller`: runs a controller, and queries a running one."""

import logging
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from mpx_controller.ask import flows, paths, status
from mpx_controller.stock.commands import assign, netmgr, run

MOST_DIGITS = 5  # of a port number


@click.group(
    "controller", invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.option(
    "--config", "file", type=click.Path(path_type=Path), metavar="FILE", help="TOML; see docs/controller.md."
)
@click.option("--listen", metavar="HOST:PORT", help="Address for switches.  [default: 127.0.0.1:6653]")
@click.option("--api", metavar="HOST:PORT", help="Address for REST and XML-RPC.  [default: 127.0.0.1:6680]")
@click.option(
    "--capacities",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Rates and delays of links; see docs/controller.md.",
)
@click.option(
    "--state",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File that keeps path sets and hosts across restarts.",
)
@click.option("--insecure", is_flag=True, help="Allow other addresses than loopback without TLS, for labs.")
@click.option(
    "--allow-from", metavar="CIDR", multiple=True, help="With --insecure: addresses that may connect."
)
@click.option(
    "--log",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Log to FILE instead of stderr: 8 MiB at most, and as much in FILE.1.",
)
@click.option("-v", "--verbose", is_flag=True, help="Log decisions, with their reasons.")
@click.pass_context
def controller(context: click.Context, /, **given: Any) -> None:
    """Steer an OpenFlow network, and hand out path sets for transfers.

    Prints its URLs as one line of JSON when it is ready.
    """
    if context.invoked_subcommand is None:
        _serve(_Options(**given))


@dataclass(frozen=True)
class _Options:
    """The options of the command, which override the file."""

    file: Path | None
    listen: str | None
    api: str | None
    capacities: Path | None
    state: Path | None
    insecure: bool
    allow_from: tuple[str, ...]
    log: Path | None
    verbose: bool

    def added_to(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Add them to the settings of a file; raises UsageError for what is not an address."""
        for section, text in (("openflow", self.listen), ("api", self.api)):
            if text is not None:
                _put(settings, section, _address(text))
        if self.capacities is not None:
            _put(settings, "links", {"capacities": self.capacities})
        if self.state is not None:
            settings["state"] = self.state
        if self.insecure or self.allow_from:
            consent = {"insecure": self.insecure, "allow_from": list(self.allow_from)}
            _put(settings, "api", consent)
            switches = settings.get("openflow", {})
            if not isinstance(switches, dict) or not switches.keys() & {"certificate", "authority", *consent}:
                _put(settings, "openflow", consent)
        return settings


def _serve(options: _Options) -> None:
    from mpx.errors import UsageError

    try:
        from mpx_controller.config import checked_config, read_capacities, read_config
        from mpx_controller.log_file import bounded_log
        from mpx_controller.server import print_ready, serve
    except ImportError as error:
        hint = "install mpx from its folder with pip install '.[controller]'"
        raise UsageError(f"{error}; {hint}") from None
    settings = options.added_to(read_config(options.file) if options.file else {})
    config = checked_config(settings, str(options.file or "the command line"))
    if config.links.capacities is not None:
        read_capacities(config.links.capacities)  # later it may be gone for a while; now it is a mistake
    logging.basicConfig(
        handlers=[logging.StreamHandler(sys.stderr) if options.log is None else bounded_log(options.log)],
        level=logging.INFO if options.verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(message)s",
    )
    serve(config, print_ready)


def _put(settings: dict[str, Any], section: str, more: Mapping[str, object]) -> None:
    """Add to a section; one that is not a table is left for the check."""
    if isinstance(some := settings.setdefault(section, {}), dict):
        some.update(more)


def _address(text: str) -> dict[str, object]:
    from mpx.errors import UsageError

    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or len(port) > MOST_DIGITS:
        raise UsageError(f"'{text}' is not an address: write HOST:PORT, for example 127.0.0.1:6653")
    return {"address": host.strip("[]"), "port": int(port)}


for _each in (assign, flows, netmgr, paths, run, status):
    controller.add_command(_each)
