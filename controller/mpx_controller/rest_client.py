"""The REST client of a controller (`mpx/sdn_client.py`), with errors and hints for an operator."""

import os
from pathlib import Path
from typing import Any

from mpx.errors import (
    AuthenticationError,
    ConnectionLost,
    ControllerError,
    MpxError,
    TransferTimeout,
    UsageError,
)
from mpx.multipath.controller import Distrusted, NoAnswer, Refusal, Unreachable
from mpx.sdn_client import TOKEN_VARIABLE, ControllerClient

ANSWER_S = 10.0
MOST_ANSWER = 64 << 20  # bytes: no controller answers more


class RestClient:
    """A controller and the token to send it. Raises UsageError where that cannot be right."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self._client = ControllerClient(url, token or "", answer_s=ANSWER_S, most_bytes=MOST_ANSWER)

    def get(self, what: str) -> Any:
        """Return the answer of `GET /what`.

        Raises ConnectionLost where nothing listens, AuthenticationError without a token that is known,
        TransferTimeout, UsageError where another program answers, MpxError for what the controller refuses.
        """
        try:
            return self._client.ask("GET", f"/{what}")
        except ControllerError as error:
            raise self._for_operator(error) from None

    def _for_operator(self, error: ControllerError) -> MpxError:
        if isinstance(error, Refusal) and error.status in (401, 403):
            return AuthenticationError(f"{error}; set {TOKEN_VARIABLE}, or give --token-file FILE")
        if isinstance(error, Refusal) and (error.status != 404 or error.detail not in ("", "Not Found")):
            return MpxError(str(error))
        if isinstance(error, Distrusted):
            return AuthenticationError(str(error))
        if isinstance(error, NoAnswer):
            return TransferTimeout(str(error))
        if isinstance(error, Unreachable):
            return ConnectionLost(f"{error}; is one running there? --url says where it is")
        return UsageError(f"what answers at {self._client.url} is not a controller; --url says where it is")


def read_token(file: Path | None) -> str | None:
    """Return the token in a file, or that of the environment; raises UsageError where it cannot be read."""
    if file is None:
        token = os.environ.get(TOKEN_VARIABLE, "")
    else:
        try:
            token = file.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"cannot read the token in {file}: {error}") from None
    token = token.strip()
    if not token.isascii() or not token.isprintable():
        raise UsageError(
            f"the token in {file or TOKEN_VARIABLE} contains characters that are not allowed in a token"
        )
    return token or None
