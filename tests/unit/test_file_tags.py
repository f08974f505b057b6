"""What answers say of a file, by which another content is noticed."""

import socket

import pytest

from mpx.endpoints.web.fetch import FileTags
from mpx.endpoints.web.incoming import HttpIncoming
from mpx.endpoints.web.reply import HttpReply
from mpx.endpoints.web.url import Origin
from mpx.engine.endpoint import FileInfo, Kind
from mpx.engine.file_transfer import FileTransfer
from mpx.errors import IntegrityError, OffsetsUnproven

HERE, ELSEWHERE = (Origin(is_secure=False, host=name, port=80) for name in ("localhost", "mirror"))


def part(tag: str) -> HttpReply:
    """An answer that brings a part of a file."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(f"HTTP/1.1 206 said\r\nContent-Length: 0\r\nETag: {tag}\r\n\r\n".encode())
        return HttpReply(HttpIncoming(ours, "server", 10, lambda: False), "server", "GET")


def file() -> FileTransfer:
    return FileTransfer("/file", "final", "part", FileInfo(Kind.FILE, 10))


def test_another_tag_is_another_content() -> None:
    tags, one = FileTags(), file()
    assert tags.why_another(one, HERE, part('"1"')) is None
    assert tags.why_another(one, HERE, part('W/"1"')) is None
    assert tags.why_another(one, ELSEWHERE, part('"2"')) is None  # a mirror has tags of its own
    assert isinstance(tags.why_another(one, HERE, part('"2"')), IntegrityError)


@pytest.mark.parametrize("tag", ['"1"', '"2"', '"3"'])
def test_no_part_is_taken_once_servers_tell_tags_of_their_own(tag: str) -> None:
    """By nobody: what one server has sent would be finished from another one."""
    tags, mixed, other = FileTags(), file(), file()
    for each in (mixed, other):
        assert tags.why_another(each, HERE, part('"1"')) is None
    assert isinstance(tags.mixed(mixed), OffsetsUnproven)
    with pytest.raises(OffsetsUnproven, match="several servers"):
        tags.why_another(mixed, HERE, part(tag))
    assert tags.why_another(other, HERE, part('"1"')) is None
