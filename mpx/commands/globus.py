"""`mpx globus`: the login at Globus that copies of `globus://` use, kept for this account alone."""

import contextlib
import os
import socket
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mpx.endpoints.globus import login as kept_login
from mpx.endpoints.globus.bounded_transport import bounded_transport
from mpx.endpoints.globus.credentials import (
    TRANSFER,
    client_in,
    data_access_scope,
    https_scope,
    native_client_id,
    transfer_scope,
)
from mpx.endpoints.globus.login import GlobusLogin, GlobusToken
from mpx.endpoints.globus.refusals import meaning
from mpx.endpoints.globus.service import answered, check_installed
from mpx.errors import AuthenticationError, MpxError, UsageError
from mpx.location import parse_collection
from mpx.text import shown

if TYPE_CHECKING:
    from globus_sdk import NativeAppAuthClient

REGISTER = (
    "name the client id of a native app, which you register at app.globus.org/settings/developers: "
    "--client-id ID, or GLOBUS_CLIENT_ID"
)
_MOST_CODE = 4096  # bytes
Answer = TypeVar("Answer")


@click.group("globus")
def globus() -> None:
    """Log in to Globus, for copies from, to and between collections (globus://COLLECTION/PATH)."""


@globus.command("login")
@click.option(
    "--client-id", metavar="ID", help="of a native app [default: GLOBUS_CLIENT_ID, else as last time]"
)
@click.option("--data-access", multiple=True, metavar="COLLECTION", help="consent to the use of its data")
@click.option("--https", multiple=True, metavar="COLLECTION", help="consent to copies by its HTTPS")
@click.option("--scope", "scopes", multiple=True, metavar="SCOPE", help="consent to this, too")
@click.option("--identity", multiple=True, metavar="ID", help="log in with this identity")
@click.option("--domain", multiple=True, metavar="DOMAIN", help="log in with an identity of this domain")
@click.option("--auth-policy", multiple=True, metavar="ID", help="log in as this policy asks for")
@click.option("--mfa", is_flag=True, help="log in with a second factor")
@click.option("--again", is_flag=True, help="log in anew, even where the browser is logged in")
def login(
    client_id: str | None,
    data_access: tuple[str, ...],
    https: tuple[str, ...],
    scopes: tuple[str, ...],
    again: bool,
    **session: Any,
) -> None:
    """Show a URL, read the code that it leads to, and keep what that is good for.

    What was consented to before stays. For work that nobody sits at, set GLOBUS_CLIENT_ID and
    GLOBUS_CLIENT_SECRET of a client of your own instead.
    """
    check_installed()
    known = _known()
    chosen = client_id or native_client_id() or (known.client_id if known else "")
    if not chosen:
        raise UsageError(f"no client id of Globus is known; {REGISTER}")
    before = known if known and known.client_id == chosen else GlobusLogin(chosen, {})
    consented = [*before.data_access, *map(parse_collection, data_access)]
    by_https = [*(each for each in before.tokens if each != TRANSFER), *map(parse_collection, https)]
    asked = [
        transfer_scope([data_access_scope(each) for each in dict.fromkeys(consented)]),
        *(https_scope(each) for each in dict.fromkeys(by_https)),
        *scopes,
    ]
    tokens = _log_in(chosen, asked, again=again, **session)
    if TRANSFER not in tokens:
        raise AuthenticationError("Globus has given no token for its Transfer service; log in again")
    now = GlobusLogin(chosen, tokens, tuple(dict.fromkeys(consented)))
    replaced = kept_login.save(now)  # at first, so that copies that run go on with what is new
    click.echo("mpx: logged in to Globus", err=True)
    old = [secret for secret in replaced.secrets() if secret not in now.secrets()] if replaced else []
    if replaced and (error := _taken_back(replaced.client_id, old)):
        what = "the tokens of the login before could not all be taken back, and hold until they expire"
        click.echo(f"mpx: {what}: {shown(str(error))}", err=True)


def _known() -> GlobusLogin | None:
    if client_in(os.environ):
        raise UsageError(
            "GLOBUS_CLIENT_ID and GLOBUS_CLIENT_SECRET let in without a login; unset the secret to log in"
        )
    with contextlib.suppress(UsageError):  # what cannot be read is replaced
        return kept_login.load()
    return None


def _log_in(client_id: str, scopes: list[str], *, again: bool, **session: Any) -> dict[str, GlobusToken]:
    from globus_sdk import MISSING

    client = _client(client_id)
    client.oauth2_start_flow(
        scopes, refresh_tokens=True, prefill_named_grant=f"mpx at {socket.gethostname()}"
    )
    url = client.oauth2_get_authorize_url(
        session_required_identities=session["identity"] or MISSING,
        session_required_single_domain=session["domain"] or MISSING,
        session_required_policies=session["auth_policy"] or MISSING,
        session_required_mfa=session["mfa"] or MISSING,
        prompt="login" if again else MISSING,
    )
    click.echo(f"Open this URL in a browser, log in, and give the code that it shows:\n{url}", err=True)
    if sys.stdin is not None and sys.stdin.isatty():
        typed = str(click.prompt("code", err=True))
    else:
        line = sys.stdin.buffer.readline(_MOST_CODE) if sys.stdin is not None else b""
        typed = line.decode("utf-8", "replace")
    code = typed.strip()
    if not code:
        raise UsageError("no code was given; run mpx globus login again")
    answer = _asked(lambda: client.oauth2_exchange_code_for_tokens(code), "log in", [code])
    try:
        return {
            str(server): GlobusToken(
                str(one["access_token"]), str(one["refresh_token"]), int(one["expires_at_seconds"])
            )
            for server, one in answer.by_resource_server.items()
            if one["refresh_token"]
        }
    except (KeyError, TypeError, ValueError):
        raise AuthenticationError("Globus answers nonsense to the login; log in again") from None


def _client(client_id: str) -> "NativeAppAuthClient":
    from globus_sdk import NativeAppAuthClient
    from globus_sdk.transport import RetryConfig

    return NativeAppAuthClient(
        client_id,
        app_name="mpx",
        transport=bounded_transport(),
        retry_config=RetryConfig(max_retries=1),
    )


def _asked(question: Callable[[], Answer], what: str, hidden: list[str]) -> Answer:
    from globus_sdk import GlobusError

    try:
        return answered(question, what)
    except GlobusError as error:
        raise meaning(error, what, AuthenticationError, hidden) from None


@globus.command("logout")
def logout() -> None:
    """Take back the tokens at Globus, and remove what is kept of the login here."""
    check_installed()
    known = kept_login.take()  # at first, so that no copy keeps a token that it renews meanwhile
    if known is None:
        click.echo("mpx: not logged in to Globus", err=True)
        return
    if error := _taken_back(known.client_id, known.secrets()):
        raise type(error)(
            f"{shown(str(error))}; what was kept here is removed, the token holds until it expires"
        )
    click.echo("mpx: logged out of Globus", err=True)


def _taken_back(client_id: str, secrets: list[str]) -> MpxError | None:
    """Have tokens let in nobody any more; return what kept the last of these from that that still do."""
    client = _client(client_id)
    kept: MpxError | None = None
    for secret in secrets:
        try:
            _asked(partial(client.oauth2_revoke_token, secret), "take back a token", [secret])
        except MpxError as error:
            kept = error
    return kept
