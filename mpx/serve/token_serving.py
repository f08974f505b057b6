"""Serving inside TLS for who has a token: the server's key, the tokens of this account, the audit log."""

from pathlib import Path

from mpx.files.state_folder import StateFolder
from mpx.serve.audit import Audit
from mpx.serve.identity import given_identity, own_identity
from mpx.serve.secure_serving import SecureServing
from mpx.serve.session import Access
from mpx.serve.tickets import Tickets
from mpx.serve.token_store import TokenStore


class TokenServing(SecureServing):
    """For who has a token of `mpx token create`.

    The key is `certificate` and `key` (files), else one in the state folder of this account, made when it
    is needed first. `audit`: a file that gets a line of JSON for each login and each command that concerns a
    file. Raises UsageError where one of these cannot be used.
    """

    def __init__(
        self, *, certificate: Path | None = None, key: Path | None = None, audit: Path | None = None
    ) -> None:
        self._state = StateFolder()
        try:
            self._identity = (
                given_identity(certificate, key or certificate) if certificate else own_identity(self._state)
            )
            self._tokens = TokenStore(self._state)
            self._tokens.grants()
            super().__init__(self._identity.context, Access(self._tokens, Tickets(), Audit(audit)))
        except BaseException:
            self._state.close()
            raise

    @property
    def key_name(self) -> str:
        """The name of the server's key, as tokens have it."""
        return self._identity.key_name

    @property
    def tokens(self) -> TokenStore:
        """Who may come in."""
        return self._tokens

    def close(self) -> None:
        """End."""
        super().close()
        self._state.close()
