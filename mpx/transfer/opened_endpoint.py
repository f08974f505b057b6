"""One endpoint for a command that copies nothing."""

import contextlib
from collections.abc import Callable, Iterator, Sequence

from mpx.endpoints.ftp.session_pool import SessionPool
from mpx.engine.endpoint import Endpoint
from mpx.engine.shared_connections import SharedConnections
from mpx.location import Location
from mpx.options import CopyOptions
from mpx.report import OnNote, no_note
from mpx.transfer.early_start import EarlyStart
from mpx.transfer.registry import endpoint_at, session_options, shared_connections
from mpx.transfer.ssh_protocol import find_protocol


@contextlib.contextmanager
def opened_endpoint(
    location: Location,
    options: CopyOptions,
    stop: Callable[[], bool] = lambda: False,
    *,
    writing: bool,
    note: OnNote = no_note,
    early: EarlyStart | None = None,
    names: Sequence[str] = (),
) -> Iterator[Endpoint]:
    """Open the endpoint of a location for a command that asks only it.

    `early`: what was begun for it. `names`: that it is asked about, beside its own.
    """
    with contextlib.ExitStack() as stack:
        servers = early.servers if early else None
        pool = stack.enter_context(contextlib.closing(SessionPool(note, remembers=False, servers=servers)))
        shared: SharedConnections | None = find_protocol(
            location, options, stop, pool, note, names=[location.name, *names]
        )
        if shared is None:
            shared = shared_connections(location, options, stop, note=note)
        if shared is not None:
            stack.enter_context(contextlib.closing(shared))
        session = session_options(options, stop, pool=pool)
        end = endpoint_at(location, session, writing=writing, note=note, shared=shared)
        yield stack.enter_context(contextlib.closing(end))
