"""How the data connections between two servers come about: who is told where to, and by what right."""

from collections.abc import Sequence

from mpx.endpoints.ftp.data_address import passive_port, target_of
from mpx.endpoints.ftp.extensions import third_party
from mpx.endpoints.ftp.extensions.dialing import Direction
from mpx.endpoints.ftp.session import ClientSession
from mpx.endpoints.ftp.wire import Reply, command, in_writes, port_command
from mpx.errors import ThirdPartyRefused
from mpx.net import tcp
from mpx.net.reach import means_the_same_at


def connect(sender: ClientSession, receiver: ClientSession, settings: Sequence[bytes]) -> list[Reply]:
    """Tell a server where to send to, and `settings` in the same write; return the answers to these.

    It connects with the first transfer. Raises ThirdPartyRefused where it will not, ConnectionLost,
    TransferTimeout.
    """
    if receiver.tickets is not None:
        return _by_ticket(sender, receiver, settings)
    return _by_port(sender, receiver, settings)


def _by_port(sender: ClientSession, receiver: ClientSession, settings: Sequence[bytes]) -> list[Reply]:
    """To a port that the receiver has opened."""
    host, port = passive_port(receiver, (), Direction.UP).address
    if not means_the_same_at(host, sender.peer_host):
        raise ThirdPartyRefused(
            f"{sender.location.host} cannot be sent to {host}, where we reach {receiver.location.host}: "
            "that address may mean another host there (--data-address-from-server takes the one that "
            "the server names)"
        )
    sender.protected(())
    where = tcp.show((host, port))
    return _told(sender, settings, port_command((host, port)), where)


def _by_ticket(sender: ClientSession, receiver: ClientSession, settings: Sequence[bytes]) -> list[Reply]:
    """To `mpx serve` inside TLS: with its key, and a ticket for data.

    Whether the address means another host where the sender is shows there: it has another key. The sender
    itself refuses those that reach less far than we do.
    """
    target = target_of(receiver)
    line = command(third_party.VERB, third_party.encode_target(target))
    return _told(sender, settings, line, target.shown)


def _told(sender: ClientSession, settings: Sequence[bytes], line: bytes, where: str) -> list[Reply]:
    lines = [*settings, line]
    for together in in_writes(lines):
        sender.send(*together)
    *options, answer = [sender.final_reply() for _ in lines]
    if not answer.is_ok:
        raise ThirdPartyRefused(f"{sender.peer} does not send data to {where}: {answer.reason}")
    return options
