"""How large a file of a server is: what its facts say, and SIZE where they are not to be trusted."""

from collections.abc import Sequence
from dataclasses import replace

from mpx.endpoints.ftp.asked_ahead import AskedAhead
from mpx.endpoints.ftp.session import ClientSession
from mpx.endpoints.ftp.wire import Reply, command
from mpx.engine.endpoint import FileInfo, Kind
from mpx.engine.source_change import END_DECIDES
from mpx.engine.whole_number import read_size
from mpx.errors import MpxError
from mpx.report import OnNote, Severity


def size_of(reply: Reply) -> int | None:
    """Read the answer to SIZE; None where it tells none."""
    return read_size(reply.text.strip()) if reply.code == 213 else None


def trusts_sizes(features: dict[str, str]) -> bool:
    """Tell whether the size in a server's facts is that of the file that is sent.

    Others may tell that of a symbolic link; those that tell links by UNIX.slink describe what they lead to.
    """
    return "unix.slink" in features.get("MLST", "").lower()


def asks_size(features: dict[str, str], ahead: AskedAhead, name: str, *, is_single: bool) -> bool:
    """Tell whether SIZE is asked of an absolute name, beside MLST, of a server that can so much.

    It is where MLST may tell the size of a link, and of a single name, where it costs nothing. It does cost a
    round trip where MLST was answered already, ahead: then only a file's is worth it.
    """
    may_differ = not trusts_sizes(features)
    known = ahead.answer(command("MLST", name))
    if known is None or ahead.answer(command("SIZE", name)) is not None:
        return is_single or may_differ
    facts = [line.lstrip().partition(" ")[0].lower() for line in known.lines]
    return may_differ and known.is_ok and not any("type=dir;" in each for each in facts)


def sized_by(
    session: ClientSession,
    found: list[FileInfo | MpxError | None],
    names: Sequence[str],
    answers: Sequence[Reply | None],
    note: OnNote,
) -> None:
    """Compare what was found of absolute names with the answers to SIZE, and put it right.

    Where SIZE was not asked and no size is known it is asked now, for all together.
    """
    replies = list(answers)
    lacking = [
        i
        for i, info in enumerate(found)
        if isinstance(info, FileInfo) and info.size_bytes is None and replies[i] is None
    ]
    more = session.pipeline([command("SIZE", names[i]) for i in lacking])
    for i, reply in zip(lacking, more, strict=True):
        replies[i] = reply
    for i, answer in enumerate(replies):
        info = found[i]
        if answer is not None and isinstance(info, FileInfo):
            found[i] = sized(info, answer, names[i], note)


def sized(info: FileInfo, answer: Reply, name: str, note: OnNote) -> FileInfo:
    """Return what is known of a file when SIZE has been asked too; `note` is told where the two differ."""
    size_bytes = size_of(answer)
    if info.kind is not Kind.FILE or size_bytes is None or size_bytes == info.size_bytes:
        return info
    if info.size_bytes is not None:
        note(
            f"{name}: MLST says {info.size_bytes} bytes and SIZE {size_bytes}; {END_DECIDES}", Severity.NOTICE
        )
        # The mode may be that of a link too: anybody may do anything with those.
        info = replace(info, mode=None, other_size_bytes=info.size_bytes)
    return replace(info, size_bytes=size_bytes)
