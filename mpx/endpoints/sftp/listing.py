"""Listing a folder over SFTP: several questions for more of it are under way at a time."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence

from mpx.endpoints.sftp import wire
from mpx.endpoints.sftp.describe import info_of, tells_type
from mpx.endpoints.sftp.refusals import is_missing
from mpx.endpoints.sftp.session import Request, request
from mpx.endpoints.sftp.wire import (
    Attributes,
    Code,
    Described,
    FolderEntry,
    Handle,
    Names,
    PacketKind,
    Reply,
    Status,
)
from mpx.engine.endpoint import FileInfo, Kind
from mpx.errors import MpxError, PartialFailure
from mpx.text import quoted

AT_ONCE = 8  # questions for more; OpenSSH answers each with a hundred names

InfoOf = Callable[[Attributes, str], FileInfo]  # the second is where a link leads
Found = tuple[str, FileInfo | MpxError]


class Listing:
    """What is in one folder. Between two batches its session may be asked other things, but not closed."""

    def __init__(
        self,
        ask: Callable[[Sequence[Request]], list[Reply]],
        folder: str,
        error_of: Callable[[Reply], MpxError],
        info_of: InfoOf = info_of,
    ) -> None:
        """Open the folder; raises what `error_of` makes of a refusal. `info_of`: what attributes mean."""
        self._ask = ask
        self._folder = folder
        self._error_of, self._info_of = error_of, info_of
        self._some = 1
        self._is_ended = False
        self._ahead: deque[list[Found]] = deque()
        (opened,) = ask([request(PacketKind.OPENDIR, wire.name(folder))])
        if not isinstance(opened, Handle):
            raise error_of(opened)
        self._handle = wire.text(opened.value)

    def found(self) -> Iterator[Found]:
        """Yield what is in the folder; links as links. Raises what `error_of` makes."""
        while self._ahead or not self._is_ended:
            if not self._ahead:
                self._read()
            while self._ahead:
                yield from self._ahead.popleft()

    def read_ahead(self) -> None:
        """Read the rest, after which the session is not needed any more."""
        while not self._is_ended:
            self._read()

    def _read(self) -> None:
        replies = self._ask([request(PacketKind.READDIR, self._handle)] * self._some)
        self._some = min(2 * self._some, AT_ONCE)
        for reply in replies:
            if isinstance(reply, Names) and reply.entries:
                self._ahead.append(list(self._described(reply.entries)))
                continue
            if not self._is_ended:
                self._is_ended = True
                self._ask([request(PacketKind.CLOSE, self._handle)])
            if not (isinstance(reply, Status) and reply.code == Code.EOF):
                raise self._error_of(reply)

    def _described(self, entries: Sequence[FolderEntry]) -> Iterator[Found]:
        """Yield entries as the engine has them; what is left open of some is asked for, of all together."""
        some = [each for each in entries if each.name not in (b".", b"..")]
        for each in [each for each in some if not _is_name(each.name)]:
            wrong = quoted(wire.decoded(each.name))
            yield "", PartialFailure(f"{self._folder}: the server lists {wrong}, which no file can be called")
        some = [each for each in some if _is_name(each.name)]
        untold = [each.name for each in some if not tells_type(each.attributes)]
        told = dict(
            zip(untold, self._ask([request(PacketKind.LSTAT, self._field(n)) for n in untold]), strict=True)
        )
        infos: dict[bytes, Attributes] = {}
        for each in some:
            reply = told.get(each.name)
            if reply is None or not is_missing(reply):
                infos[each.name] = reply.attributes if isinstance(reply, Described) else each.attributes
        listed = {name: self._info_of(attributes, "") for name, attributes in infos.items()}
        links = [name for name, info in listed.items() if info.kind is Kind.LINK]
        leads = self._ask([request(PacketKind.READLINK, self._field(name)) for name in links])
        targets = {
            name: wire.decoded(reply.entries[0].name)
            for name, reply in zip(links, leads, strict=True)
            if isinstance(reply, Names) and reply.entries
        }
        for name, attributes in infos.items():
            yield wire.decoded(name), self._info_of(attributes, targets.get(name, ""))

    def _field(self, name: bytes) -> bytes:
        return wire.text(wire.encoded(self._folder).rstrip(b"/") + b"/" + name)


def _is_name(name: bytes) -> bool:
    return bool(name) and b"/" not in name and b"\0" not in name
