"""Runs a controller: listens for switches and for callers until it is told to end."""

import asyncio
import json
import logging
import os
import resource
import secrets
import signal
import socket
import sys
from collections.abc import Callable

import uvicorn

from mpx._version import __version__
from mpx.errors import UsageError
from mpx_controller.api.callers import Callers
from mpx_controller.api.guard import Guard, Guarded
from mpx_controller.api.rest import rest_of
from mpx_controller.channel import ANSWER_S
from mpx_controller.config import Config, Listen
from mpx_controller.controller import Controller
from mpx_controller.tls import tls_context

MOST_FILES = 4096
UNREAD = 128 << 10  # bytes of one switch that wait to be read: what matters must not be behind a flood
BACKLOG = 2048  # callers that wait to be accepted
ENDING_S = 1  # that open requests have when it is ended

log = logging.getLogger(__name__)


def serve(config: Config, ready: Callable[[dict[str, str]], None]) -> None:
    """Serve until SIGINT or SIGTERM; `ready` is told the URLs. Raises UsageError where it cannot listen."""
    asyncio.run(_serve(config, ready))


async def _serve(config: Config, ready: Callable[[dict[str, str]], None]) -> None:
    controller = Controller(config, _secret(config))
    callers = Callers(config.api)
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    of_switches, of_callers = config.openflow, config.api
    tls = tls_context("openflow", of_switches.certificate, of_switches.key, of_switches.authority)
    callers_tls = tls_context("api", of_callers.certificate, of_callers.key)
    _have_files()
    try:
        openflow = await asyncio.start_server(
            controller.switches.accept,
            config.openflow.address,
            config.openflow.port,
            ssl=tls,
            ssl_handshake_timeout=ANSWER_S if tls else None,
        )
    except OSError as error:
        raise UsageError(f"cannot listen for switches: {error.strerror or error}") from None
    try:
        callers_come = _listening(config.api)
    except OSError as error:
        openflow.close()
        where = f"{config.api.address} port {config.api.port}"
        raise UsageError(f"cannot listen for callers on {where}: {error.strerror or error}") from None
    for listening in openflow.sockets:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, UNREAD)
    told = uvicorn.Config(
        Guard(rest_of(controller, callers, __version__), callers),
        http=Guarded,
        ws="none",
        proxy_headers=False,  # a caller is who has connected, whatever it says
        log_config=None,
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=ENDING_S,
    )
    told.load()
    told.ssl = callers_tls
    api = _Api(told)
    serving = asyncio.create_task(api.serve([callers_come]))
    keeping = asyncio.create_task(controller.keep())
    ending = asyncio.create_task(ended.wait())
    try:
        while not api.started and not serving.done():
            await asyncio.sleep(0.005)
        if serving.done():
            serving.result()
            raise UsageError("the interface for callers has ended before it began")
        ready(_urls(config, openflow.sockets[0].getsockname()[1], callers_come.getsockname()[1]))
        await asyncio.wait({ending, serving, keeping}, return_when=asyncio.FIRST_COMPLETED)
        for each in (keeping, serving):
            if each.done():
                each.result()
    finally:
        openflow.close()
        controller.close()
        api.should_exit = True
        keeping.cancel()
        ending.cancel()
        await asyncio.gather(serving, keeping, ending, return_exceptions=True)


def _listening(where: Listen) -> socket.socket:
    family = socket.AF_INET6 if ":" in where.address else socket.AF_INET
    return socket.create_server((where.address, where.port), family=family, backlog=BACKLOG)


def _have_files() -> None:
    """Let us have as many connections as we accept: callers must not keep switches from connecting."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


class _Api(uvicorn.Server):
    """Leaves signals to us."""

    def install_signal_handlers(self) -> None:
        """Do nothing."""

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until `should_exit`."""
        await self._serve(sockets)


def print_ready(urls: dict[str, str]) -> None:
    """Print one line of JSON with all URLs: whoever started us reads it and begins."""
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


def _secret(config: Config) -> bytes:
    """Return what signs questions about links: kept beside the state, so that a restart knows its own."""
    if config.state is None:
        return secrets.token_bytes(32)
    file = config.state.with_name(f"{config.state.name}.secret")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as made:
                made.write(secrets.token_bytes(32))
        return file.read_bytes()
    except OSError as error:
        raise UsageError(f"the state cannot be kept in {config.state}: {error}") from None
