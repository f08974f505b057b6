"""Copies of whole files by gfal2."""

import contextlib
import errno
import os
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import gfal2

from mpx.endpoints.gfal.served.connections import ForeignConnections
from mpx.endpoints.gfal.served.contexts import KeptContext, parameters_of
from mpx.endpoints.gfal.served.job import GfalJob
from mpx.endpoints.gfal.settings import CopyOrder

_BLOCK_BYTES = 4 * 1024 * 1024  # as gfal2 has it


def copy_job(kept: KeptContext, order: CopyOrder, connections: ForeignConnections) -> GfalJob:
    """Begin to copy a file."""
    handed = _handed(order.handed_by) if order.handed_by >= 0 else -1
    if handed >= 0:
        order = replace(order, source=f"file:///proc/self/fd/{handed}")

    def work(job: GfalJob, context: Any) -> str:
        try:
            if order.is_here and order.source.startswith("gsiftp:"):
                _read(job, context, order)
            else:
                parameters = parameters_of(context, order)
                if _may_be_told_of(order):
                    parameters.event_callback, parameters.monitor_callback = job.told, job.moved
                context.filecopy(parameters, order.source, order.destination)
        except BaseException:
            kept.drop()
            raise
        finally:
            if handed >= 0:
                os.close(handed)
        return ""

    connections.begin(order.congestion)
    return GfalJob(kept.of(order.kind, order.straight), work, connections)


def _handed(by: int) -> int:
    """Return the descriptor of the source, which came before the order."""
    with socket.socket(fileno=os.dup(by)) as hands:
        _, (fd, *_), _, _ = socket.recv_fds(hands, 1, 1)
    return fd


def _may_be_told_of(order: CopyOrder) -> bool:
    """Tell whether gfal2 may tell of its steps: by XRootD's protocol it does so with names as they are.

    The binding ends the process where such a name is no UTF-8.
    """
    for url in (order.source, order.destination):
        try:
            unquote(url, errors="strict")
        except UnicodeDecodeError:
            if url.startswith("root"):
                return False
    return True


def _read(job: GfalJob, context: Any, order: CopyOrder) -> None:
    """Read a file of a GridFTP server as gfal2 does to copy it, but keep its session.

    gfal2 closes the file, and thereby the connection, while the server has still to say that it is sent.
    """
    file, count = context.open(order.source, "r"), 0
    with Path(urlsplit(order.destination).path).open("wb") as here:
        while data := file.read_bytes(_BLOCK_BYTES):
            if job.is_cancelled:
                raise OSError(errno.ECANCELED, os.strerror(errno.ECANCELED))
            try:
                here.write(data)
                here.flush()
            except OSError as error:
                raise OSError(error.errno, f"(destination) {error.strerror}") from None
            count += len(data)
            job.has_read(count)
    with contextlib.suppress(gfal2.GError):  # over another session, which takes as long as that answer
        context.stat(order.source)
    del file
