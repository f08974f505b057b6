"""Runs a controller: listens for switches and for callers until a signal ends it."""

import asyncio
import json
import logging
import os
import resource
import secrets
import signal
import socket
import ssl
import sys
from collections.abc import Callable

import uvicorn

from mpx._version import __version__
from mpx.errors import UsageError
from mpx_controller.api.callers import Callers
from mpx_controller.api.guard import ALL_CONNECTIONS, CONNECTIONS, NO_TLS, Guard, Guarded
from mpx_controller.api.rest import rest_of
from mpx_controller.config import Config, Listen
from mpx_controller.controller import Controller
from mpx_controller.openflow import MOST_CONNECTIONS, Switches
from mpx_controller.secret_file import SECRET_BYTES, kept_secret
from mpx_controller.tls import tls_context
from mpx_controller.tls_listener import TlsListener

MOST_FILES = 4096
UNREAD = 128 << 10  # bytes of one switch that wait to be read: what matters must not be behind a flood
BACKLOG = 2048  # callers that wait to be accepted
ENDING_S = 1  # that open requests may still take at the end

log = logging.getLogger(__name__)


def serve(config: Config, ready: Callable[[dict[str, str]], None]) -> None:
    """Serve until SIGINT or SIGTERM; `ready` gets the URLs. Raises UsageError where it cannot listen."""
    asyncio.run(_serve(config, ready))


async def _serve(config: Config, ready: Callable[[dict[str, str]], None]) -> None:
    secret = secrets.token_bytes(SECRET_BYTES) if config.state is None else kept_secret(config.state)
    controller = Controller(config, secret)
    callers = Callers(config.api)
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    of_switches, of_callers = config.openflow, config.api
    tls = tls_context("openflow", of_switches.certificate, of_switches.key, of_switches.authority)
    callers_tls = tls_context("api", of_callers.certificate, of_callers.key)
    _have_files()
    switches_come = listening("switches", of_switches)
    try:
        callers_come = listening("callers", of_callers)
    except UsageError:
        switches_come.close()
        raise
    switches_come.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, UNREAD)
    settings = uvicorn.Config(
        Guard(rest_of(controller, callers, __version__), callers),
        http=Guarded,
        ws="none",
        proxy_headers=False,  # the address of a caller is that of its connection, whatever headers say
        log_config=None,
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=ENDING_S,
    )
    settings.load()
    for name in ("uvicorn.error", "asyncio"):  # below: lines for whatever peers get wrong
        logging.getLogger(name).setLevel(logging.ERROR)
    api = _Api(settings)
    urls = _urls(config, switches_come.getsockname()[1], callers_come.getsockname()[1])
    accepting = [
        asyncio.create_task(_accept_switches(controller.switches, switches_come, tls)),
        *(
            []
            if callers_tls is None
            else [asyncio.create_task(_accept_callers(api, callers_come, callers_tls))]
        ),
    ]
    serving = asyncio.create_task(api.serve([callers_come] if callers_tls is None else []))
    keeping = asyncio.create_task(controller.keep())
    ending = asyncio.create_task(ended.wait())
    try:
        while not api.started and not serving.done():
            await asyncio.sleep(0.005)
        if serving.done():
            serving.result()
            raise UsageError("the REST interface ended before it started")
        ready(urls)
        await asyncio.wait({ending, serving, keeping, *accepting}, return_when=asyncio.FIRST_COMPLETED)
        for each in (keeping, serving, *accepting):
            if each.done():
                each.result()
    finally:
        for task in accepting:
            task.cancel()
        keeping.cancel()
        ending.cancel()
        controller.close()
        api.should_exit = True
        await asyncio.gather(serving, keeping, ending, *accepting, return_exceptions=True)


async def _accept_switches(switches: Switches, come: socket.socket, tls: ssl.SSLContext | None) -> None:
    """Accept switches until it is cancelled."""
    if tls is None:
        async with await asyncio.start_server(switches.accept, sock=come, backlog=BACKLOG) as server:
            await server.serve_forever()
        return
    loop = asyncio.get_running_loop()

    def protocol() -> asyncio.StreamReaderProtocol:
        return asyncio.StreamReaderProtocol(asyncio.StreamReader(loop=loop), switches.accept, loop=loop)

    def plain(address: str, _: bytes) -> bytes:
        switches.complain(
            address, "%s does not speak TLS, as this port does: have it connect to ssl:", address
        )
        return b""

    await TlsListener(tls, protocol, plain, MOST_CONNECTIONS, MOST_CONNECTIONS).serve(come)


async def _accept_callers(api: uvicorn.Server, come: socket.socket, tls: ssl.SSLContext) -> None:
    """Accept callers who speak TLS until it is cancelled."""

    def protocol() -> Guarded:
        return Guarded(config=api.config, server_state=api.server_state, app_state={})

    await TlsListener(tls, protocol, lambda *_: NO_TLS, CONNECTIONS, ALL_CONNECTIONS).serve(come)


def listening(for_whom: str, where: Listen) -> socket.socket:
    """Return a listening socket whose accepted connections have TCP_NODELAY. Raises UsageError.

    An answer leaves in two writes, head and body. Without TCP_NODELAY the second waits for the caller to
    acknowledge the first, for which it takes 40 ms; asyncio sets it for sockets that it has made itself only.
    """
    family = socket.AF_INET6 if ":" in where.address else socket.AF_INET
    try:
        made = socket.create_server((where.address, where.port), family=family, backlog=BACKLOG)
    except OSError as error:
        at = f"{where.address} port {where.port}"
        raise UsageError(f"cannot listen for {for_whom} on {at}: {os.strerror(error.errno or 0)}") from None
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # Linux: accepted ones have it, too
    return made


def _have_files() -> None:
    """Raise the limit of open files to what all connections need: callers must not keep switches out."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


class _Api(uvicorn.Server):
    """uvicorn without its signal handlers: `_serve` has its own."""

    def install_signal_handlers(self) -> None:
        """Do nothing."""

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until `should_exit`."""
        await self._serve(sockets)


def print_ready(urls: dict[str, str]) -> None:
    """Print one line of JSON with all URLs: for the program that has started us."""
    sys.stdout.write(json.dumps(urls) + "\n")
    sys.stdout.flush()


def _urls(config: Config, openflow_port: int, api_port: int) -> dict[str, str]:
    scheme = "https" if config.api.certificate else "http"
    switches = "ssl" if config.openflow.certificate else "tcp"
    api = f"{scheme}://{_host(config.api)}:{api_port}"
    return {
        "openflow": f"{switches}:{_host(config.openflow)}:{openflow_port}",
        "rest": api,
        "xmlrpc": f"{api}/RPC2",
    }


def _host(listen: Listen) -> str:
    return f"[{listen.address}]" if ":" in listen.address else listen.address
