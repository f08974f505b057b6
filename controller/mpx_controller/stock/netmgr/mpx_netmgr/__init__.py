"""Streams of a globus-gridftp-server over several paths: a module for the net_manager driver of GCT.

    PYTHONPATH=... MPX_CONTROLLER=http://... globus-gridftp-server -xnetmgr "manager=python;pymod=mpx_netmgr;"

The server calls the hooks below for each data connection and waits for them. As soon as both ends of a stream
are known its source port is registered at the controller: of a download before any byte flows, as the server
connects; of an upload when the client has connected, which may have begun to send. Nothing that goes wrong
stops a transfer: no hook raises, none waits for much longer than a second, and of several failures in a row
only the first is waited for and logged.
"""

from __future__ import annotations

from typing import Any

from .log import log

_made: list[Any] = []  # the session of this process, once it is needed; None where it cannot be made


def _tell(what: str, *words: str) -> None:
    try:
        if not _made:
            _made.append(None)
            from .session import Session  # here, as a module that cannot be loaded would end all transfers

            _made[0] = Session()
        if _made[0] is not None:
            getattr(_made[0], what)(*words)
    except Exception as error:
        log(f"streams are not steered: {type(error).__name__}: {error}")


def pre_listen(task_id: str, transport: str, attributes: object) -> None:  # noqa: ARG001
    """A client is going to connect."""
    _tell("get_ready")


def post_accept(task_id: str, transport: str, local: str, remote: str, attributes: object) -> None:  # noqa: ARG001
    """A client has connected: a stream of an upload."""
    _tell("accepted", task_id, local, remote)


def pre_connect(task_id: str, transport: str, remote: str, attributes: object) -> None:  # noqa: ARG001
    """We are going to connect to a client."""
    _tell("get_ready")


def post_connect(task_id: str, transport: str, local: str, remote: str, attributes: object) -> None:  # noqa: ARG001
    """We have connected: a stream of a download."""
    _tell("connected", task_id, local, remote)


def post_close(task_id: str, transport: str, local: str, remote: str, attributes: object) -> None:  # noqa: ARG001
    """A stream has ended."""
    _tell("closed", local, remote)
