"""`mpx serve`: the command line of the embedded endpoint."""

import ipaddress
import logging
from functools import partial
from pathlib import Path

import click

from mpx.errors import UsageError
from mpx.net import congestion_control
from mpx.serve import process
from mpx.serve.secure_serving import TokenServing
from mpx.serve.server import Server
from mpx.serve.session import Limits
from mpx.serve.stdio import run as run_stdio
from mpx.signals import Signals


@click.command()
@click.argument("directory", metavar="DIR", required=False)
@click.option("--stdio", is_flag=True, help="As mpx copy starts it over ssh; takes nothing else.")
@click.option("--host", default="127.0.0.1", show_default=True, help="IP address to listen at.")
@click.option(
    "--port", default=2811, show_default=True, type=click.IntRange(0, 65535), help="0: any free port."
)
@click.option("--writable", is_flag=True, help="Let clients store, rename and remove.")
@click.option("--tls", is_flag=True, help="Inside TLS, for who has a token (always beyond this machine).")
@click.option(
    "--certificate", metavar="FILE", help="With TLS: a certificate of an authority, with its chain."
)
@click.option("--key", metavar="FILE", help="The private key of --certificate.")
@click.option(
    "--audit", metavar="FILE", help="With TLS: log logins and what is done to files, as JSON lines."
)
@click.option("--insecure", is_flag=True, help="Listen beyond this machine, without encryption or password.")
@click.option("--allow-from", metavar="CIDR", multiple=True, help="With --insecure: who may connect.")
@click.option(
    "--congestion",
    metavar="NAME",
    multiple=True,
    help="Congestion controls that clients may select (default: those of all users of this host).",
)
@click.option(
    "--drain",
    default=0.0,
    metavar="SECONDS",
    type=click.FloatRange(0),
    help="When it is ended, let transfers under way take so long (default: 0).",
)
@click.option("-v", "--verbose", is_flag=True, help="Log each session, command and transfer to stderr.")
def serve(
    directory: str | None,
    stdio: bool,
    host: str,
    port: int,
    writable: bool,
    tls: bool,
    certificate: str | None,
    key: str | None,
    audit: str | None,
    insecure: bool,
    allow_from: tuple[str, ...],
    congestion: tuple[str, ...],
    drain: float,
    verbose: bool,
) -> None:
    """Serve DIR over GridFTP until stopped, read-only unless told otherwise.

    On this machine in the clear (ftp://); with --tls, or beyond it, inside TLS (mpx://) for clients with a
    token of `mpx token create`. When it is ready it prints one line with its URL. SIGTERM, SIGINT and SIGHUP
    end it, with exit code 0; a second one at once. With TLS, SIGHUP reads the certificate anew and opens the
    audit log anew.
    """
    logging.basicConfig(
        level=logging.INFO if verbose else logging.ERROR, format="%(asctime)s mpx serve: %(message)s"
    )
    process.prepare()
    if stdio:
        run_stdio()
        return
    if directory is None:
        raise click.UsageError("name the folder that is to be served")
    try:
        for name in congestion:
            congestion_control.check_congestion(name)
        is_secure = tls or (not insecure and not _is_loopback(host))
        if not is_secure and (certificate or key or audit):
            raise UsageError("--certificate, --key and --audit are for a server inside TLS: add --tls")
        secure = _secure(certificate, key, audit) if is_secure else None
        server = Server(
            directory,
            host=host,
            port=port,
            writable=writable,
            insecure=insecure,
            allow_from=allow_from,
            limits=Limits(congestion=congestion or None),
            secure=secure,
        )
    except UsageError as error:
        raise click.UsageError(str(error)) from error
    with Signals(grace_s=None, hung_up=partial(_reload, secure) if secure else None) as signals, server:
        access = "writable" if writable else "read-only"
        openness = f" insecure: open to {' '.join(allow_from)}" if insecure else ""
        key_said = f" key {secure.key_name}" if secure else ""
        print(f"mpx serve: {server.url} serves {directory} ({access}){openness}{key_said}", flush=True)  # noqa: T201
        signals.cancel.wait()
        server.close(drain_s=drain)


def _reload(secure: TokenServing) -> None:
    try:
        secure.reload()
    except UsageError as error:  # what there was goes on
        logging.getLogger(__name__).error("not reloaded: %s", error)


def _secure(certificate: str | None, key: str | None, audit: str | None) -> TokenServing:
    """Return what serves inside TLS; raises UsageError."""
    if key and not certificate:
        raise UsageError("--key is that of --certificate: give both")
    paths = [Path(name) if name else None for name in (certificate, key, audit)]
    secure = TokenServing(certificate=paths[0], key=paths[1], audit=paths[2])
    if not secure.tokens.grants():
        logging.getLogger(__name__).error("no client can log in yet: mpx token create makes a token")
    return secure


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return True  # it is refused later
