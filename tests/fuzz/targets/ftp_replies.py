"""Replies of a server to our commands, in whatever pieces they come, and all that is read in one."""

from contextlib import suppress
from types import SimpleNamespace

from mpx.choices import ALGORITHMS
from mpx.endpoints.ftp import data_address, refusals, wire
from mpx.endpoints.ftp.checksum_forms import digest_in
from mpx.endpoints.ftp.extensions.dialing import Direction
from mpx.endpoints.ftp.extensions.echo import parse_place
from mpx.endpoints.ftp.facts import entry_info, kind_of, parse_time
from mpx.endpoints.ftp.framing import marker_bytes, range_marker
from mpx.endpoints.ftp.sizes import size_of, sized, trusts_sizes
from mpx.endpoints.ftp.telnet_escape import wants_doubled
from mpx.engine.endpoint import FileInfo, Part
from mpx.errors import ConnectionLost, MpxError, SourceError

MOST_SAID = 2500  # characters of a message about what a server says

SEEDS = [
    b"220 host GridFTP Server 13.24 (gcc64, 1651610000-85) [Globus Toolkit 6.2] ready.\r\n"
    b"331 Password required"
    b"\r\n230 User ftp logged in.\r\n",
    b"120 Service ready in 3 minutes.\r\n220-Welcome\r\n 220 not the end\r\n220 ready\r\n",
    b"211-Extensions supported:\r\n"
    b" MLST Type*;Size*;Modify*;Perm*;Charset;UNIX.mode*;Unique*;UNIX.slink*;\r\n"
    b" SPAS\r\n SPOR\r\n ERET\r\n ESTO\r\n DSI\r\n REST STREAM\r\n CKSM ADLER32:10;MD5:10;\r\n"
    b" MPX-ECHO 4001 0123456789abcdef\r\n MPX-CONGESTION cubic bbr\r\n211 End.\r\n",
    b"211-Features:\r\n EPRT\r\n EPSV\r\n MDTM\r\n PASV\r\n REST STREAM\r\n SIZE\r\n TVFS\r\n211 End\r\n",
    b"250-status of /data/f\r\n Type=file;Modify=20240102030405;Size=7;Perm=r;UNIX.mode=0644;Unique=801-5; /f"
    b"\r\n250 End.\r\n",
    b"250-Start of list for x\r\n type=OS.unix=slink:/there;size=4;modify=20240102030405.123; "
    b"x\r\n250 End\r\n",
    b"213 9223372036854775807\r\n213 20240102030405\r\n213 20240102030405.5\r\n550 x: No such file\r\n",
    b"227 Entering Passive Mode (127,0,0,1,156,65)\r\n227 =127,0,0,1,156,65\r\n227 ( 127, 0, 0, "
    b"1, 156, 65 ).\r\n",
    b"229 Entering Extended Passive Mode (|||40001|)\r\n229 ok (|2|fd00::1|40001|)\r\n",
    b"229-Entering Striped Passive Mode.\r\n 127,0,0,1,156,65\r\n 10,0,0,2,156,66\r\n229 End\r\n",
    b"213 0a1b2c3d\r\n213 A1B2C3\r\n213 /data/f 0x0a1b2c3d\r\n"
    b"213 MD5 (f) = d41d8cd98f00b204e9800998ecf8427e\r\n",
    b"150 Begining transfer; reusing existing data connection.\r\n"
    b"111 Range Marker 0-1048576,2097152-3145728\r\n"
    b"112-Perf Marker\r\n Timestamp:  1651610000.5\r\n Stripe Index: 0\r\n"
    b" Stripe Bytes Transferred: 1048576\r\n"
    b" Total Stripe Count: 1\r\n112 End.\r\n226 Transfer Complete.\r\n",
    b"113-Checksum Marker\r\n Bytes Processed: 77\r\n113 End.\r\n213 00000001\r\n",
    b"500-Command failed. : globus_l_gfs_file_open failed.\r\n500-globus_xio: Unable to open file /x\r\n"
    b"500-globus_xio: System error in open: No such file or directory\r\n500 End.\r\n",
    b"550-GlobusError: v=1 c=PATH_NOT_FOUND\r\n550-GridFTP-Errno: 2\r\n550-GridFTP-Reason: System error\r\n"
    b"550-GridFTP-Error-String: No such file or directory\r\n550 End.\r\n",
    b"452 Insufficient disk space\r\n421 Too many connections\r\n530 Login incorrect\r\n"
    b"425 Connection refused\r\n"
    b"553 Prohibited file name: .x\r\n426 ECONNRESET\r\n",
    b'257 "/home/u""x" is current directory.\r\n550 \xff\xff0a1b2c3d: No such file\r\n',
]
ALLOWED = (MpxError,)


def parse(data: bytes) -> None:
    """Read the bytes at once and in pieces, which must give the same, and read all there is in each reply."""
    replies, why = _read(data, len(data) + 1)
    piece = data[0] % 17 + 1 if data else 1
    again, why_again = _read(data, piece)
    assert again[: len(replies)] == replies and why_again == why
    for reply in replies:
        _whole(reply)


def _read(data: bytes, piece: int) -> tuple[list[wire.Reply], str]:
    reader, replies = wire.ReplyReader(), []
    try:
        for at in range(0, len(data), piece):
            replies += reader.feed(data[at : at + piece])
    except ValueError as error:
        return replies, str(error)
    return replies, ""


def _whole(reply: wire.Reply) -> None:
    assert 100 <= reply.code <= 699
    assert len(reply.reason) <= MOST_SAID
    features = wire.parse_features(reply)
    trusts_sizes(features)
    parse_place(features.get("MPX-ECHO", ""))
    size = size_of(reply)
    assert size is None or 0 <= size < 1 << 63
    parse_time(reply.text)
    assert 0 <= marker_bytes(reply) < 1 << 63
    with suppress(ValueError):
        assert all(0 <= start <= end < 1 << 63 for start, end in range_marker(reply))
    for algorithm in ALGORITHMS:
        digest = digest_in(reply.text, algorithm, Part("/data/f", 0, 3))
        assert digest is None or (digest.isalnum() and digest == digest.lower())
    wants_doubled(reply.text, reply.text, "0a1b2c3d")
    _facts(reply)
    _address(reply)
    _refusal(reply)


def _facts(reply: wire.Reply) -> None:
    for line in reply.lines[1:-1]:
        with suppress(ValueError):
            entry = wire.parse_facts(line, is_indented=True)
            kind_of(entry)
            info: FileInfo = entry_info(entry)
            assert info.size_bytes is None or 0 <= info.size_bytes < 1 << 63
            sized(info, reply, "name", lambda _: None)


def _address(reply: wire.Reply) -> None:
    for believed in (False, True):
        asked = SimpleNamespace(
            peer="ftp://peer",
            peer_host="127.0.0.1",
            passive=(b"EPSV\r\n",),
            security=None,
            tickets=None,
            options=SimpleNamespace(data_address_from_server=believed),
        )
        with suppress(ConnectionLost):
            _, port = data_address.passive_reply(asked, reply, Direction.UP).address  # type: ignore[arg-type]
            assert data_address.FIRST_PORT <= port < 65536


def _refusal(reply: wire.Reply) -> None:
    refusals.is_missing(reply)
    refusals.is_unsupported(reply)
    refusals.says_why(reply)
    for error in (
        refusals.reply_error(reply, "peer cannot send it", SourceError),
        refusals.cannot_store(reply, "peer", "name", ".name.part"),
        refusals.cannot_send(reply, "peer", "name"),
    ):
        assert len(str(error)) <= MOST_SAID
