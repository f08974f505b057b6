"""Serving one folder until a signal ends it: what `mpx serve DIR` does."""

import ipaddress
import logging
from functools import partial
from pathlib import Path

import click

from mpx.errors import UsageError
from mpx.net import congestion_control
from mpx.serve import process
from mpx.serve.server import Server
from mpx.serve.session import Limits
from mpx.serve.token_serving import TokenServing
from mpx.signals import Signals


def serve_folder(
    directory: str,
    *,
    host: str,
    port: int,
    writable: bool,
    tls: bool,
    certificate: str | None,
    key: str | None,
    audit: str | None,
    insecure: bool,
    allow_from: tuple[str, ...],
    congestion: tuple[str, ...],
    third_party: bool,
    drain_s: float,
    verbose: bool,
) -> None:
    """Serve a folder; each option of the command is one here. Raises click.UsageError."""
    logging.basicConfig(
        level=logging.INFO if verbose else logging.ERROR, format="%(asctime)s mpx serve: %(message)s"
    )
    process.prepare()
    try:
        for name in congestion:
            congestion_control.check_congestion(name)
        is_secure = tls or (not insecure and not _is_loopback(host))
        if not is_secure and (certificate or key or audit):
            raise UsageError("--certificate, --key and --audit are for a server inside TLS: add --tls")
        secure = _secure(certificate, key, audit) if is_secure else None
        server = Server(
            directory,
            host=host,
            port=port,
            writable=writable,
            insecure=insecure,
            allow_from=allow_from,
            limits=Limits(congestion=congestion or None, third_party=third_party),
            secure=secure,
        )
    except UsageError as error:
        raise click.UsageError(str(error)) from error
    with Signals(grace_s=None, hung_up=partial(_reload, secure) if secure else None) as signals, server:
        access = "writable" if writable else "read-only"
        openness = f" insecure: open to {' '.join(allow_from)}" if insecure else ""
        key_said = f" key {secure.key_name}" if secure else ""
        print(f"mpx serve: {server.url} serves {directory} ({access}){openness}{key_said}", flush=True)  # noqa: T201
        signals.cancel.wait()
        server.close(drain_s=drain_s)


def _reload(secure: TokenServing) -> None:
    try:
        secure.reload()
    except UsageError as error:  # what there was goes on
        logging.getLogger(__name__).error("not reloaded: %s", error)


def _secure(certificate: str | None, key: str | None, audit: str | None) -> TokenServing:
    """Return what serves inside TLS; raises UsageError."""
    if key and not certificate:
        raise UsageError("--key is that of --certificate: give both")
    paths = [Path(name) if name else None for name in (certificate, key, audit)]
    secure = TokenServing(certificate=paths[0], key=paths[1], audit=paths[2])
    if not secure.tokens.grants():
        logging.getLogger(__name__).error("no client can log in yet: mpx token create makes a token")
    return secure


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return True  # it is refused later
