"""`mpx controller`: run one, and ask one that runs."""

import logging
import sys
from pathlib import Path

import click

from mpx_controller.ask import flows, paths, status
from mpx_controller.stock.commands import assign, netmgr, run


@click.group(
    "controller", invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.option(
    "--config", "file", type=click.Path(path_type=Path), metavar="FILE", help="TOML; see docs/controller.md."
)
@click.option("--listen", metavar="HOST:PORT", help="For switches.  [default: 127.0.0.1:6653]")
@click.option("--api", metavar="HOST:PORT", help="For REST and XML-RPC.  [default: 127.0.0.1:6680]")
@click.option("--capacities", type=click.Path(path_type=Path), metavar="FILE", help="What links carry.")
@click.option("--state", type=click.Path(path_type=Path), metavar="FILE", help="What outlives a restart.")
@click.option("--insecure", is_flag=True, help="Beyond loopback without TLS, for labs.")
@click.option("--allow-from", metavar="CIDR", multiple=True, help="With --insecure: from where.")
@click.option("-v", "--verbose", is_flag=True, help="Say what is decided, and why.")
@click.pass_context
def controller(
    context: click.Context,
    file: Path | None,
    listen: str | None,
    api: str | None,
    capacities: Path | None,
    state: Path | None,
    insecure: bool,
    allow_from: tuple[str, ...],
    verbose: bool,
) -> None:
    """Steer an OpenFlow network, and hand out path sets for transfers.

    Prints its URLs as one line of JSON when it is ready.
    """
    if context.invoked_subcommand is not None:
        return
    from mpx.errors import UsageError

    try:
        from mpx_controller.config import checked_config, read_config
        from mpx_controller.server import print_ready, serve
    except ImportError as error:
        raise UsageError(f"{error}; install what it needs: pip install 'mpx-dtn[controller]'") from None
    config = read_config(file) if file else checked_config({}, "the configuration")
    told = config.model_dump(exclude_defaults=True)
    for section, text in (("openflow", listen), ("api", api)):
        if text is not None:
            told.setdefault(section, {}).update(_address(text))
    if capacities is not None:
        told.setdefault("links", {})["capacities"] = capacities
    if state is not None:
        told["state"] = state
    if insecure or allow_from:
        told.setdefault("api", {}).update(insecure=insecure, allow_from=list(allow_from))
        if config.openflow.certificate is None:
            told.setdefault("openflow", {}).update(insecure=insecure, allow_from=list(allow_from))
    config = checked_config(told, str(file or "the command line"))
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO if verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(message)s",
    )
    serve(config, print_ready)


def _address(text: str) -> dict[str, object]:
    from mpx.errors import UsageError

    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal():
        raise UsageError(f"'{text}' is no address: write HOST:PORT, for example 127.0.0.1:6653")
    return {"address": host.strip("[]"), "port": int(port)}


for _each in (assign, flows, netmgr, paths, run, status):
    controller.add_command(_each)
