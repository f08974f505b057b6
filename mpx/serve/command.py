"""`mpx serve`: the command line of the embedded endpoint."""

import logging

import click

from mpx.errors import UsageError
from mpx.net import congestion_control
from mpx.serve import process
from mpx.serve.server import Server
from mpx.serve.session import Limits
from mpx.signals import Signals


@click.command()
@click.argument("directory", metavar="DIR")
@click.option("--host", default="127.0.0.1", show_default=True, help="IP address to listen at.")
@click.option(
    "--port", default=2811, show_default=True, type=click.IntRange(0, 65535), help="0: any free port."
)
@click.option("--writable", is_flag=True, help="Let clients store, rename and remove.")
@click.option("--insecure", is_flag=True, help="Listen beyond this machine, without encryption or password.")
@click.option("--allow-from", metavar="CIDR", multiple=True, help="With --insecure: who may connect.")
@click.option(
    "--congestion",
    metavar="NAME",
    multiple=True,
    help="Congestion controls that clients may select (default: those of all users of this host).",
)
@click.option("-v", "--verbose", is_flag=True, help="Log each session, command and transfer to stderr.")
def serve(
    directory: str,
    host: str,
    port: int,
    writable: bool,
    insecure: bool,
    allow_from: tuple[str, ...],
    congestion: tuple[str, ...],
    verbose: bool,
) -> None:
    """Serve DIR over GridFTP (ftp://) until stopped, read-only unless told otherwise.

    When it is ready it prints one line with its URL. SIGTERM, SIGINT and SIGHUP end it, with exit code 0; a
    second one at once.
    """
    logging.basicConfig(
        level=logging.INFO if verbose else logging.ERROR, format="%(asctime)s mpx serve: %(message)s"
    )
    process.prepare()
    try:
        for name in congestion:
            congestion_control.check_congestion(name)
        server = Server(
            directory,
            host=host,
            port=port,
            writable=writable,
            insecure=insecure,
            allow_from=allow_from,
            limits=Limits(congestion=congestion or None),
        )
    except UsageError as error:
        raise click.UsageError(str(error)) from error
    with Signals(grace_s=None) as signals, server:
        access = "writable" if writable else "read-only"
        openness = f" insecure: open to {' '.join(allow_from)}" if insecure else ""
        print(f"mpx serve: {server.url} serves {directory} ({access}){openness}", flush=True)  # noqa: T201
        signals.cancel.wait()
