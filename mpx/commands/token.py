"""`mpx token`: who may log in to the `mpx serve` of this account, and the tokens for servers of others."""

import re
import sys
import time
from pathlib import Path

import click

from mpx.endpoints.ftp.token import is_key, parse_token, save, saved_file, token_for
from mpx.endpoints.schemes import capabilities_of
from mpx.errors import UsageError
from mpx.files.state_folder import StateFolder
from mpx.location import Location, parse_location
from mpx.text import quoted, shown

_UNITS = {"m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_DURATION = re.compile(r"([0-9]{1,6})([mhdw])", re.ASCII)


@click.group(invoke_without_command=True)
@click.pass_context
def token(context: click.Context) -> None:
    """Make and take back tokens for `mpx serve` inside TLS, and keep those for servers of others."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
        context.exit(2)


@token.command("create")
@click.option("--write", is_flag=True, help="It may also store, rename and remove (default: read only).")
@click.option("--folder", default="/", show_default=True, help="Of the served folder: what it can see.")
@click.option("--expires", metavar="TIME", help="After this long: 30m, 12h, 7d, 4w (default: never).")
@click.option("--note", default="", metavar="TEXT", help="Whom it is for; `list` shows it.")
@click.option("--certificate", metavar="FILE", help="The certificate that the server shows, if not its own.")
def create(write: bool, folder: str, expires: str | None, note: str, certificate: str | None) -> None:
    """Make a token and print it: once, as only its hash is kept.

    Hand it over as you would a password. It names the server's key, so that its holder cannot be misled.
    """
    from mpx.serve.identity import given_identity, own_identity
    from mpx.serve.token_store import TokenStore, new_token

    until_s = time.time() + _seconds(expires) if expires else None
    with StateFolder() as state:
        path = Path(certificate) if certificate else None
        identity = given_identity(path, path) if path else own_identity(state)
        made, grant = new_token(identity.key_name, folder=folder, writable=write, until_s=until_s, note=note)
        TokenStore(state).add(grant)
    click.echo(made.text)
    click.echo(f"mpx: token {grant.id}; it is not shown again", err=True)


@token.command("list")
def list_tokens() -> None:
    """Show the tokens of this account's server, without their secrets."""
    from mpx.serve.token_store import TokenStore

    now_s = time.time()
    with StateFolder() as state:
        for grant in TokenStore(state).grants():
            may = "write" if grant.writable else "read"
            when = grant.until_s
            until = "never" if when is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(when))
            over = "" if grant.is_valid(now_s) else " (expired)"
            click.echo(shown(f"{grant.id}  {may:5}  {grant.folder}  expires {until}{over}  {grant.note}"))


@token.command("revoke")
@click.argument("token_id", metavar="ID")
def revoke(token_id: str) -> None:
    """Take back the token with this id. Sessions and transfers that use it end within about a second."""
    from mpx.serve.token_store import TokenStore

    with StateFolder() as state:
        if not TokenStore(state).revoke(token_id):
            raise UsageError(f"there is no token {token_id!r}; mpx token list shows those that there are")


@token.command("save")
@click.argument("server", metavar="SERVER")
def save_token(server: str) -> None:
    """Keep a token for SERVER (mpx://HOST:PORT), read from standard input, for copies to come."""
    location = _server(server)
    is_typed = sys.stdin.isatty()
    text = click.prompt("token", hide_input=True, err=True) if is_typed else sys.stdin.read(4096)
    save(saved_file(location, "token"), parse_token(text, "standard input").text)


@token.command("accept")
@click.argument("server", metavar="SERVER")
@click.argument("key", metavar="KEY")
def accept(server: str, key: str) -> None:
    """Accept KEY as that of SERVER (mpx://HOST:PORT), instead of the one that the present token names.

    Have the operator of the server confirm it first: whoever has this key gets the token.
    """
    location = _server(server)
    if not is_key(key):
        raise UsageError(f"{quoted(key)} is not the name of a key: 43 letters, digits, - and _")
    save(saved_file(location, "key"), f"{token_for(location).key} {key}")


def _server(text: str) -> Location:
    location = parse_location(text if "://" in text else f"mpx://{text}")
    if not capabilities_of(location).by_token:
        raise UsageError(f"{text}: tokens are for mpx://HOST:PORT")
    return location


def _seconds(text: str) -> int:
    found = _DURATION.fullmatch(text)
    if not found:
        raise UsageError(f"--expires {text!r} is not a time: write 30m, 12h, 7d or 4w")
    return int(found.group(1)) * _UNITS[found.group(2)]
