"""Path sets for `mpx controller assign` and `run`: what the net_manager asks, over the REST client of mpx.

The net_manager has a client of its own, as it runs where neither mpx nor what mpx needs is installed.
"""

from typing import Any

from mpx.errors import ControllerError
from mpx.sdn_client import ControllerClient
from mpx_controller.stock.netmgr.mpx_netmgr.client import Client, Unsteered

TIMEOUT_S = 3.0


class StockClient(Client):
    """A controller and the token to send it. Raises UsageError where that cannot be right."""

    def __init__(self, url: str, token: str | None) -> None:
        super().__init__(url, token, TIMEOUT_S)
        self._rest = ControllerClient(url, token or "", answer_s=TIMEOUT_S)

    def _ask(self, method: str, what: str, body: dict[str, Any] | None = None) -> Any:
        try:
            return self._rest.ask(method, f"/path-sets{what}", body)
        except ControllerError as error:
            raise Unsteered(str(error), getattr(error, "status", 0)) from None
