"""Relays the switches' connections to a controller in another network namespace.

    python -I -S relay.py HOST PORT < a listening Unix socket

Uses only the standard library. Prints `ready` once it serves, and ends on SIGTERM. Where the controller
cannot be reached the switch's connection is closed, and the switch tries again. The reason is printed on
standard error once for as long as it stays the same, as switches try again for ever.
"""

import asyncio
import os
import socket
import sys
from contextlib import suppress

CHUNK_BYTES = 65536


async def relay(listening: socket.socket, host: str, port: int) -> None:
    """Serve until cancelled."""
    last = ""

    def tell(failure: str) -> None:
        nonlocal last
        if failure != last:
            last = failure
            print(failure, file=sys.stderr, flush=True)  # noqa: T201

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there_reader, there_writer = await asyncio.open_connection(host, port)
        except OSError as error:
            writer.close()
            reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error
            tell(f"cannot connect to {host} port {port}: {reason}")
            return
        await asyncio.gather(_pump(reader, there_writer), _pump(there_reader, writer))
        tell(f"a connection to {host} port {port} has ended")

    server = await asyncio.start_unix_server(serve, sock=listening)
    print("ready", flush=True)  # noqa: T201
    await server.serve_forever()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        with suppress(OSError):
            while chunk := await reader.read(CHUNK_BYTES):
                writer.write(chunk)
                await writer.drain()
    finally:
        writer.close()


if __name__ == "__main__":
    asyncio.run(relay(socket.socket(fileno=0), sys.argv[1], int(sys.argv[2])))
