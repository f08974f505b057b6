"""What lets us in at Globus: the login of a user, or a client of the user's own with its secret.

The secret and the tokens come from the environment and from a file of this account, and go to Globus alone.
"""

import contextlib
import os
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from mpx.endpoints.globus import login as kept_login
from mpx.endpoints.globus.bounded_transport import bounded_transport
from mpx.endpoints.globus.login import GlobusLogin, GlobusToken
from mpx.endpoints.globus.refusals import LOG_IN, data_access_in
from mpx.errors import AuthenticationError, UsageError
from mpx.report import OnNote, Severity, no_note

if TYPE_CHECKING:
    from globus_sdk.authorizers import RenewingAuthorizer

TRANSFER = "transfer.api.globus.org"  # its name as a server of resources
TRANSFER_SCOPE = "urn:globus:auth:scope:transfer.api.globus.org:all"
# As this SDK's documentation has it, and as Globus' own command line has it.
_PAIRS = (
    ("GLOBUS_CLIENT_ID", "GLOBUS_CLIENT_SECRET"),
    ("GLOBUS_CLI_CLIENT_ID", "GLOBUS_CLI_CLIENT_SECRET"),
)


def https_scope(collection: str) -> str:
    """Return the scope that lets in at the HTTPS of a collection."""
    return f"https://auth.globus.org/scopes/{collection}/https"


def data_access_scope(collection: str) -> str:
    """Return the scope by which the service may use the data of a collection in the user's name."""
    return f"https://auth.globus.org/scopes/{collection}/data_access"


def transfer_scope(data_access: Sequence[str]) -> str:
    """Return the scope of the service, with scopes that it may use data by."""
    # Optional (*), as only so collections are consented to one by one.
    return (
        f"{TRANSFER_SCOPE}[{' '.join(f'*{scope}' for scope in data_access)}]"
        if data_access
        else TRANSFER_SCOPE
    )


class GlobusCredentials(Protocol):
    """What lets us in. For any thread; may connect, so that a call may take its time."""

    def authorizer(self, server: str) -> "RenewingAuthorizer[Any]":
        """Return what lets us in at the service (TRANSFER), or at the HTTPS of a collection.

        Raises AuthenticationError where the user has not logged in for that, and what the SDK raises.
        """
        ...

    def consents(self, scopes: Sequence[str]) -> bool:
        """Have the service be given further scopes; False where only the user can consent to these."""
        ...

    def secrets(self) -> list[str]:
        """Return what nobody is to see."""
        ...


def find_credentials(
    environment: Mapping[str, str] = os.environ, note: OnNote = no_note
) -> GlobusCredentials:
    """Return what lets us in; AuthenticationError where nothing does, UsageError for half of a pair."""
    if pair := client_in(environment):
        return ClientOfUser(*pair)
    login = kept_login.load()
    if login is None:
        raise AuthenticationError(
            f"not logged in to Globus; run: {LOG_IN}, or set GLOBUS_CLIENT_ID and GLOBUS_CLIENT_SECRET"
        )
    return LoginOfUser(login, note)


def client_in(environment: Mapping[str, str]) -> tuple[str, str] | None:
    """Return id and secret of a client that the environment has; UsageError for a secret of nobody."""
    for id_name, secret_name in _PAIRS:
        client_id, secret = environment.get(id_name, ""), environment.get(secret_name, "")
        if secret and not client_id:
            raise UsageError(f"{secret_name} is set without {id_name}; set both, or neither")
        if client_id and secret:
            return client_id, secret
    return None


def native_client_id(environment: Mapping[str, str] = os.environ) -> str:
    """Return the id of the native application that the environment names; empty for none."""
    return next((environment[name] for name, _ in _PAIRS if environment.get(name)), "")


class LoginOfUser:
    """The tokens of a login, renewed as they expire."""

    def __init__(self, login: GlobusLogin, note: OnNote = no_note) -> None:
        self._note = note
        self._lock = threading.Lock()  # guards the next two
        self._login = login
        self._authorizers: dict[str, RenewingAuthorizer[Any]] = {}

    def authorizer(self, server: str) -> "RenewingAuthorizer[Any]":
        """See GlobusCredentials."""
        from globus_sdk import NativeAppAuthClient, RefreshTokenAuthorizer
        from globus_sdk.transport import RetryConfig

        with self._lock:
            if server in self._authorizers:
                return self._authorizers[server]
            token = self._login.tokens.get(server)
            if token is None:
                option = "" if server == TRANSFER else f" --https {server}"
                raise AuthenticationError(f"not logged in to Globus for {server}; run: {LOG_IN}{option}")
            latest = partial(self._latest, server)

            class LatestTokenAuthorizer(RefreshTokenAuthorizer):  # type: ignore[misc]
                """Goes on with the token of a login anew, as those of the login before are taken back."""

                def _get_token_response(self) -> Any:
                    self.refresh_token = latest()
                    return super()._get_token_response()

            made: RenewingAuthorizer[Any] = LatestTokenAuthorizer(
                token.refresh,
                NativeAppAuthClient(
                    self._login.client_id,
                    transport=bounded_transport(),
                    retry_config=RetryConfig(max_retries=0),
                ),
                access_token=token.access,
                expires_at=token.expires_s,
                on_refresh=lambda answer: self._renewed(server, answer),
            )
            self._authorizers[server] = made
            return made

    def _latest(self, server: str) -> str:
        """Return what another token is had for: that of another login, if the user has logged in anew."""
        with self._lock:
            now = None
            with contextlib.suppress(UsageError):
                now = kept_login.load()
            if now is not None and now.client_id == self._login.client_id and server in now.tokens:
                self._login = self._login.with_token(server, now.tokens[server])
            return self._login.tokens[server].refresh

    def _renewed(self, server: str, answer: Any) -> None:
        """Keep a new token, unless the user has logged out, or in anew, meanwhile."""
        (told,) = answer.by_resource_server.values()
        with self._lock:
            known = self._login.tokens[server]
            refresh = told.get("refresh_token") or known.refresh
            token = GlobusToken(told["access_token"], refresh, int(told["expires_at_seconds"]))
            try:
                kept_login.renew(server, known, token)
            except UsageError as error:
                text = (
                    f"the login at Globus was renewed, and is not kept: {error}; if it is refused next time"
                )
                self._note(f"{text}, run: {LOG_IN}", Severity.NOTICE)
            self._login = self._login.with_token(server, token)

    def consents(self, scopes: Sequence[str]) -> bool:  # noqa: ARG002 the user does, in a browser
        """See GlobusCredentials."""
        return False

    def secrets(self) -> list[str]:
        """See GlobusCredentials."""
        with self._lock:
            tokens = list(self._login.tokens.values())
            current = [each.access_token or "" for each in self._authorizers.values()]
        return [*current, *(text for token in tokens for text in (token.access, token.refresh))]


class ClientOfUser:
    """A client that acts for itself (client credentials), for work that nobody sits at."""

    def __init__(self, client_id: str, secret: str) -> None:
        self._client_id, self._secret = client_id, secret
        self._lock = threading.Lock()  # guards the next two
        self._data_access: list[str] = []  # scopes that the service has asked for
        self._authorizers: dict[str, RenewingAuthorizer[Any]] = {}

    def authorizer(self, server: str) -> "RenewingAuthorizer[Any]":
        """See GlobusCredentials. Asks for a token where there is none."""
        from globus_sdk import ClientCredentialsAuthorizer, ConfidentialAppAuthClient
        from globus_sdk.transport import RetryConfig

        with self._lock:
            if server not in self._authorizers:
                scope = transfer_scope(self._data_access) if server == TRANSFER else https_scope(server)
                client = ConfidentialAppAuthClient(
                    self._client_id,
                    self._secret,
                    transport=bounded_transport(),
                    retry_config=RetryConfig(max_retries=0),
                )
                self._authorizers[server] = ClientCredentialsAuthorizer(client, scope)
            return self._authorizers[server]

    def consents(self, scopes: Sequence[str]) -> bool:
        """See GlobusCredentials. A client consents for itself, once to each."""
        with self._lock:
            found = [one for scope in scopes for one in data_access_in(scope)]
            new = [scope for scope in dict.fromkeys(found) if scope not in self._data_access]
            self._data_access += new
            if new:
                self._authorizers.pop(TRANSFER, None)
            return bool(new)

    def secrets(self) -> list[str]:
        """See GlobusCredentials."""
        with self._lock:
            return [self._secret, *(each.access_token or "" for each in self._authorizers.values())]
