"""Carry the switches' connections to their controller, which is in another network namespace.

    python -I -S relay.py HOST PORT < a listening Unix socket

Uses nothing but the standard library. Prints `ready` once it serves, and ends when it is told to (SIGTERM).
A controller that cannot be reached ends the switch's connection, and the switch tries again.
"""

import asyncio
import socket
import sys
from contextlib import suppress

CHUNK_BYTES = 65536


async def relay(listening: socket.socket, host: str, port: int) -> None:
    """Serve until cancelled."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError):
                there_reader, there_writer = await asyncio.open_connection(host, port)
                await asyncio.gather(_pump(reader, there_writer), _pump(there_reader, writer))
        finally:
            writer.close()

    server = await asyncio.start_unix_server(serve, sock=listening)
    print("ready", flush=True)  # noqa: T201
    await server.serve_forever()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        with suppress(ConnectionError):
            while chunk := await reader.read(CHUNK_BYTES):
                writer.write(chunk)
                await writer.drain()
    finally:
        writer.close()


if __name__ == "__main__":
    asyncio.run(relay(socket.socket(fileno=0), sys.argv[1], int(sys.argv[2])))
