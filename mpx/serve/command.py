"""`mpx serve`: the command line of the embedded endpoint."""

from typing import Any

import click


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
    "--no-third-party",
    "third_party",
    flag_value=False,
    default=True,
    help="With TLS: do not send to other servers that clients name.",
)
@click.option(
    "--drain",
    "drain_s",
    default=0.0,
    metavar="SECONDS",
    type=click.FloatRange(0),
    help="When it is ended, let transfers under way take so long (default: 0).",
)
@click.option("-v", "--verbose", is_flag=True, help="Log each session, command and transfer to stderr.")
def serve(directory: str | None, stdio: bool, **options: Any) -> None:
    """Serve DIR over GridFTP until stopped, read-only unless told otherwise.

    On this machine in the clear (ftp://); with --tls, or beyond it, inside TLS (mpx://) for clients with a
    token of `mpx token create`. When it is ready it prints one line with its URL. SIGTERM, SIGINT and SIGHUP
    end it, with exit code 0; a second one at once. With TLS, SIGHUP reads the certificate anew and opens the
    audit log anew.
    """
    if stdio:
        from mpx.serve.stdio import main

        main()
        return
    if directory is None:
        raise click.UsageError("name the folder that is to be served")
    from mpx.serve.folder import serve_folder

    serve_folder(directory, **options)
