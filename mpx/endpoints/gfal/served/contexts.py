"""What gfal2 is told before it does anything: a context of its own for each copy.

One that has copied between two servers of GridFTP with several streams brings the blocks of the next file
in another order, and says that all went well.
"""

from typing import Any

import gfal2

from mpx.endpoints.gfal.settings import GfalSettings

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


def parameters_of(context: Any, *, streams: int, is_here: bool) -> Any:
    """Return how a file is copied; `streams`, `is_here`: see CopyOrder."""
    parameters = context.transfer_parameters()
    parameters.timeout = _COPY_S
    parameters.overwrite = True
    parameters.create_parent = False
    if streams:
        parameters.nbstreams = streams
    if is_here:  # then nothing is looked at before, and what is open is written
        parameters.strict_copy = True
    return parameters
