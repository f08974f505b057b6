"""What takes longest is begun first: an ssh logs in while the rest of a copy is imported.

Only what was not refused is begun, as an ssh may ask the user for a password. Imports little.
"""

from collections.abc import Sequence
from contextlib import suppress

from mpx.choices import PortRange, parse_ports
from mpx.endpoints.ftp.ssh.servers import RemoteServers
from mpx.endpoints.schemes import capabilities_of
from mpx.endpoints.ssh.command_line import RemoteProgram
from mpx.errors import MpxError
from mpx.location import Location
from mpx.options import CopyOptions
from mpx.transfer.refusals import check_options, check_places


class EarlyStart:
    """What was begun for a copy, or for a listing; `close` ends it with all that came of it."""

    def __init__(self) -> None:
        self.servers = RemoteServers()

    def __enter__(self) -> "EarlyStart":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def copy(self, sources: Sequence[Location], destination: Location, options: CopyOptions) -> None:
        """Begin for a copy. Raises UsageError for one that is refused before anything connects.

        Not where it asks a controller: whether it can do that is known later.
        """
        places = (sources[0], destination)
        far_is_source = capabilities_of(destination).is_here
        far, near = (sources[0], None) if far_is_source else (destination, sources[0])
        if near and capabilities_of(near).is_here:
            near = None
        first = next((place for place in places if capabilities_of(place).through_ssh), None)
        if first and options.controller is None:
            check_places(sources)
            check_options(options, far, far_is_source=far_is_source, near=near)
            self.reach(first, options)  # one alone, as two might ask for passwords at once

    def reach(self, location: Location, options: CopyOptions) -> None:
        """Begin to log in where a location is reached by ssh.

        What fails is not told: it fails again, and is told then, where the first session is opened.
        """
        if capabilities_of(location).through_ssh:
            with suppress(MpxError):
                self.servers.log_in(location, remote_program(options))

    def close(self) -> None:
        """End what runs."""
        self.servers.close()


def remote_program(options: CopyOptions) -> RemoteProgram:
    """Return what runs at the other end of an ssh; raises UsageError for a name that a shell could act on."""
    return RemoteProgram(
        options.remote_mpx,
        options.remote_python or "python3",
        bootstrap=options.bootstrap or options.bootstrap_once,
        keep=not options.bootstrap_once,
    )


def data_ports(options: CopyOptions) -> PortRange | None:
    """Return where it listens for direct connections; None: where it likes."""
    return parse_ports(options.data_ports) if options.data_ports else None
