"""What gfal2 is told before it does anything: a context, which copies of one kind share.

One that has copied between two servers of GridFTP with several streams brings the blocks of the next file
that is read from there in another order, and says that all went well: so no two kinds share one.
"""

import time
from collections.abc import Hashable
from typing import Any

import gfal2

from mpx.endpoints.gfal.settings import CopyOrder, GfalSettings

LONGEST_KEPT_S = 30.0  # that a session may wait for its next copy: servers end those that wait for longer
_COPY_S = 7 * 24 * 3600  # mpx watches whether anything moves
_CHECKSUM_S = 3600


def new_context(settings: GfalSettings, straight: str = "") -> Any:
    """Return a fresh context, which has sessions of its own; `straight`: see CopyOrder."""
    context = gfal2.creat_context()
    context.set_opt_integer("CORE", "NAMESPACE_TIMEOUT", settings.timeout_s)
    context.set_opt_integer("CORE", "CHECKSUM_TIMEOUT", _CHECKSUM_S)
    context.set_opt_boolean("BDII", "ENABLED", False)
    context.set_opt_boolean("GRIDFTP PLUGIN", "DCAU", True)
    context.set_opt_boolean("GRIDFTP PLUGIN", "IPV6", settings.ipv6)
    context.set_opt_boolean("HTTP PLUGIN", "LOG_SENSITIVE", False)
    context.set_opt_string_list("SRM PLUGIN", "TURL_PROTOCOLS", ["gsiftp", "https", "root"])
    if straight == "never":
        context.set_opt_string("HTTP PLUGIN", "DEFAULT_COPY_MODE", "streamed")
    elif straight == "only":
        context.set_opt_boolean("HTTP PLUGIN", "ENABLE_STREAM_COPY", False)
    if settings.certificate:
        context.set_opt_string("X509", "CERT", settings.certificate)
        context.set_opt_string("X509", "KEY", settings.key or settings.certificate)
    for server, token in settings.tokens.items():
        context.cred_set(server, context.cred_new("BEARER", token))
    return context


class KeptContext:
    """A context, with its sessions, for one use after the other: a login takes longer than a small file.

    Used by one thread at a time.
    """

    def __init__(self, settings: GfalSettings) -> None:
        self._settings = settings
        self._kept: Any = None
        self._kind: Hashable = None
        self._begun_s = 0.0  # its last use

    def of(self, kind: Hashable, straight: str = "") -> Any:
        """Return one for what begins now; of another kind, or of None, it gets a fresh one."""
        now_s = time.monotonic()
        is_of_it = kind is not None and kind == self._kind
        if self._kept is None or not is_of_it or now_s - self._begun_s > LONGEST_KEPT_S:
            self._kept, self._kind = new_context(self._settings, straight), kind
        self._begun_s = now_s
        return self._kept

    def drop(self) -> None:
        """Have nothing use it any more: something has failed in it."""
        self._kept = None


def parameters_of(context: Any, order: CopyOrder) -> Any:
    """Return how a file is copied.

    Nothing is looked for before (`strict_copy`): that takes another login at GridFTP servers, and what is
    open here is to be written. SRM has to be told that what is there goes, and all that it stays.
    """
    parameters = context.transfer_parameters()
    parameters.timeout = _COPY_S
    parameters.overwrite = not order.is_new
    parameters.create_parent = False
    parameters.strict_copy = not (order.is_new or order.destination.startswith("srm:"))
    if order.streams:
        parameters.nbstreams = order.streams
    return parameters
