"""The protocol against literal bytes, most of them as a stock server sent them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.endpoints.ftp import wire
from mpx.endpoints.ftp.framing import marker_bytes, range_marker
from mpx.engine.whole_number import parse_whole
from mpx.errors import UsageError

FEAT = (
    b"211-Extensions supported\r\n CKSM MD5:10;ADLER32:10;\r\n REST STREAM\r\n MLST Type*;Size*;\r\n"
    b"211 End.\r\n"
)


def replies(data: bytes) -> list[wire.Reply]:
    return wire.ReplyReader().feed(data)


def test_single_and_multi_line_replies():
    assert replies(b"220 host ready.\r\n") == [wire.Reply(220, ("host ready.",))]
    assert replies(b"230\r\n") == [wire.Reply(230, ("",))]
    (feat,) = replies(FEAT)
    assert wire.parse_features(feat) == {
        "CKSM": "MD5:10;ADLER32:10;",
        "REST": "STREAM",
        "MLST": "Type*;Size*;",
    }


def test_error_block_of_a_stock_server():
    (reply,) = replies(
        b"550-GlobusError: v=1 c=PATH_NOT_FOUND\r\n550-GridFTP-Errno: 2\r\n"
        b"550-GridFTP-Error-String: No such file or directory\r\n550 End.\r\n"
    )
    assert reply.error_class == "PATH_NOT_FOUND"
    assert reply.reason == "No such file or directory"
    assert not reply.is_ok


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (
            b"500-GlobusError: v=1 c=PATH_EXISTS\r\n GridFTP-Errno: 17\r\n500 End.\r\n",
            "PATH_EXISTS",
        ),
        (b"500-GlobusError: v=1 c=QUOTA\r\n GridFTP-Error-String: \r\n500 End.\r\n", "QUOTA"),
        (b"530 Login incorrect.\r\n", "Login incorrect"),  # a message may go on with "; ..."
        (b"450 Wait...\r\n", "Wait..."),
        (b"500-Command failed.\r\n500-No room.\r\n500 End.\r\n", "Command failed. No room. End"),
        (b"550 \r\n", "550"),
    ],
)
def test_what_a_person_is_told_of_a_refusal(raw, reason):
    (reply,) = replies(raw)
    assert reply.reason == reason


def test_inner_lines_that_look_like_other_codes_do_not_end_a_reply():
    (reply,) = replies(b"250-list\r\n226 not the end\r\n 250 nor this\r\n250 End\r\n")
    assert reply.lines == ("list", "226 not the end", " 250 nor this", "End")


@given(st.integers(1, 40), st.integers(0, 3))
def test_replies_do_not_depend_on_how_the_bytes_arrive(size, repeat):
    data = (FEAT + b"150 go\r\n") * (repeat + 1)
    reader, seen = wire.ReplyReader(), []
    for i in range(0, len(data), size):
        seen += reader.feed(data[i : i + size])
    assert seen == replies(data)


IAC_WILL_ECHO, IAC_NOP, IAC_TTYPE = b"\xff\xfb\x01", b"\xff\xf1", b"\xff\xfa\x18\x01\xff\xff\xff\xf0"


@pytest.mark.parametrize(
    "telnet",
    [
        IAC_WILL_ECHO,
        IAC_NOP,
        IAC_TTYPE,
        IAC_NOP * 1000,
        IAC_WILL_ECHO + IAC_TTYPE,
        b"\xff\xfd\n",
        IAC_NOP + b"\r\n",
    ],
)
def test_telnet_commands_before_a_reply_are_none_of_it(telnet):
    assert replies(telnet + b"220 ready\r\n") == [wire.Reply(220, ("ready",))]
    (feat,) = replies(telnet + FEAT.replace(b"211 End", telnet + b"211 End"))
    assert feat.code == 211
    assert not replies(telnet)


def test_telnet_without_end_is_refused():
    reader = wire.ReplyReader()
    with pytest.raises(ValueError, match="longer than"):
        reader.feed(IAC_NOP * wire.ReplyReader.LONGEST_REPLY_BYTES)


def test_names_keep_what_looks_like_telnet():
    (reply,) = replies(b"250-x\r\n type=file; \xff\xf1a\r\n250 \xff\xf1\r\n")
    assert reply.lines == ("x", " type=file; \udcff\udcf1a", "\udcff\udcf1")


@pytest.mark.parametrize(
    "garbage",
    [
        b"\xff\xfa220 ready\r\n",
        b"\xff220 ready\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\x16\x03\x01\n",
        b"999 no\r\n",
        b"x\r\n",
    ],
)
def test_what_is_not_ftp_is_refused(garbage):
    with pytest.raises(ValueError, match="not an FTP reply"):
        replies(garbage)


def test_a_reply_without_end_is_refused():
    reader = wire.ReplyReader()
    with pytest.raises(ValueError, match="longer than"):
        for _ in range(40):
            reader.feed(b"220-" + b"x" * (1 << 14))


@pytest.mark.parametrize("more", [b"\n", b"\r\n", b"x\n"])
def test_short_lines_without_end_are_refused_too(more):
    reader = wire.ReplyReader()
    reader.feed(b"220-\r\n")
    with pytest.raises(ValueError, match="longer than"):
        reader.feed(more * wire.ReplyReader.LONGEST_REPLY_BYTES)


def test_short_lines_count_for_more_than_their_text():
    reader = wire.ReplyReader()
    lines = wire.ReplyReader.LONGEST_REPLY_BYTES // wire.ReplyReader.LINE_COSTS_BYTES
    with pytest.raises(ValueError, match="longer than"):
        reader.feed(b"220-\r\n" + b"ab\n" * lines)


def test_a_reply_ends_with_its_code_and_not_with_a_number_that_begins_so():
    assert replies(b"211-Status\r\n2110 files\r\n211Done\r\n211 End\r\n") == [
        wire.Reply(211, ("Status", "2110 files", "211Done", "End"))
    ]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('"/"', "/"),
        ('"/home/u" is the current directory.', "/home/u"),
        ('"/a""b""" is cwd', '/a"b"'),
        ('"/home" is current directory for "u"', "/home"),
        ('Current directory is "/u"', "/u"),
        ('"/no end', "/no end"),
        ("/home/u is the current directory", "/home/u"),
        ("is /home", "/home"),
        ('"C:\\" is current', "/C:/"),
        ('"D:\\ftp root" is current', "/D:/ftp root"),
        ('"/back\\slash"', "/back\\slash"),
        ('"" is nowhere', "/"),
        ("no idea", "/"),
        ('"' * 200_001, "/" + '"' * 100_000),
    ],
)
def test_the_login_folder_however_it_is_quoted(text, name):
    assert wire.login_folder(wire.Reply(257, (text,))) == name
    assert wire.login_folder(wire.Reply(550, (text,))) == "/"


@given(st.lists(st.binary(max_size=40)))
def test_any_bytes_are_replies_or_a_value_error_however_they_are_cut(pieces):
    """And the same replies, whether they come at once or byte by byte."""

    def heard(chunks):
        reader, seen = wire.ReplyReader(), []
        try:
            for chunk in chunks:
                seen += reader.feed(chunk)
        except ValueError as error:
            return seen if len(list(chunks)) > 1 else None, str(error)
        return seen, None

    data = b"".join(b"220" + piece for piece in pieces)
    at_once, why = heard([data])
    dripped, why_dripped = heard([bytes([byte]) for byte in data])
    assert why == why_dripped
    assert at_once in (None, dripped)


def test_a_long_refusal_is_cut_for_the_reader():
    assert len(wire.Reply(550, ("x" * 200_000,)).reason) < 1100
    assert len(wire.Reply(550, ("GlobusError: c=" + "A" * 200_000,)).reason) < 1100


@pytest.mark.parametrize("char", ["\r", "\n", "\0"])
def test_names_that_would_break_the_line_are_refused(char):
    with pytest.raises(UsageError, match="rename"):
        wire.command("STOR", f"a{char}b")


@given(st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), min_size=1))
def test_any_other_name_goes_out_as_it_is(name):
    assert wire.command("STOR", name) == b"STOR " + name.encode() + b"\r\n"


def test_undecodable_bytes_of_a_name_survive():
    name = b"caf\xe9".decode("utf-8", "surrogateescape")
    assert wire.command("SIZE", name) == b"SIZE caf\xe9\r\n"


def test_server_reply_lines():
    assert wire.reply_line(200, "ok") == b"200 ok\r\n"
    assert wire.reply_line(211, "Features", "SIZE", "End") == b"211-Features\r\n SIZE\r\n211 End\r\n"
    assert replies(wire.reply_line(211, "Features", "SIZE", "End"))[0].lines[1] == " SIZE"


def test_addresses():
    assert wire.parse_host_port("Entering Passive Mode (127,0,0,1,183,31)") == ("127.0.0.1", 46879)
    assert wire.parse_extended_address("Entering Extended Passive Mode (|||59485|)") == ("", 59485)
    assert wire.parse_extended_address("|2|::1|5000|") == ("::1", 5000)
    assert wire.port_command(("127.0.0.1", 46879)) == b"PORT 127,0,0,1,183,31\r\n"
    assert wire.port_command(("::1", 5000)) == b"EPRT |2|::1|5000|\r\n"
    for bad in ("127,0,0,1,183", "1,2,3,4,5,600", ""):
        with pytest.raises(ValueError, match="not an address"):
            wire.parse_host_port(bad)
    for bad in ("||||", "|||99999|", "|||0|", ""):
        with pytest.raises(ValueError, match="not an address"):
            wire.parse_extended_address(bad)


@pytest.mark.parametrize(
    "text",
    [
        "Entering Passive Mode (127, 0, 0, 1, 4, 1)",
        "Entering Passive Mode 127,0,0,1,4,1",
        "Entering Passive Mode ( 127 ,0,0,\t1,4,1 ).",
        "Entering Passive Mode, 127,0,0,1,4,1.",
        "Entering Passive Mode [127,0,0,1,4,1]",
        "=127,0,0,1,4,1",
        "2 ports: 127,0,0,1,4,1 of 3",
        "127,0,0,1,4,1",
    ],
)
def test_host_and_port_as_servers_write_them(text):
    assert wire.parse_host_port(text) == ("127.0.0.1", 1025)


@pytest.mark.parametrize(
    "text",
    [
        "Entering Extended Passive Mode (|||1025|)",
        "Entering Extended Passive Mode ( |||1025| ).",
        "Entering Extended Passive Mode (||| 1025 |)",
        "Entering Extended Passive Mode |||1025|",
        "EPSV (RFC 2428): [|||1025|].",
        "go (!!!1025!)",
        "(|||1025|",
    ],
)
def test_ports_as_servers_write_them(text):
    assert wire.parse_extended_address(text) == ("", 1025)


PARSERS = [
    parse_whole,
    wire.parse_host_port,
    wire.parse_extended_address,
    wire.parse_ranges,
    wire.parse_facts,
    lambda text: range_marker(wire.Reply(111, (text,))),
]
LIKELY = st.text("0123456789,-|:;=() \tabc.\u00b2\u0663\udcff", max_size=60)


@given(st.sampled_from(PARSERS), LIKELY | st.text())
def test_parsers_raise_nothing_but_value_errors(parse, text):
    try:
        parse(text)
    except ValueError as error:
        assert len(str(error)) < 600


@given(LIKELY)
def test_what_is_read_from_any_reply_raises_nothing(text):
    reply = wire.Reply(112, ("Perf Marker", text, "End."))
    assert isinstance(reply.reason, str)
    assert marker_bytes(reply) >= 0
    assert marker_bytes(wire.Reply(111, (text,))) >= 0


def test_facts_end_at_the_first_blank_because_names_are_raw():
    entry = wire.parse_facts(" Type=file;Size=67108864;UNIX.slink=/a%20b; a; b=c %20 d", is_indented=True)
    assert entry.name == "a; b=c %20 d"
    assert entry.facts == {"type": "file", "size": "67108864", "unix.slink": "/a%20b"}
    with pytest.raises(ValueError, match="facts"):
        wire.parse_facts("Type=file;")


def test_ranges():
    for bad in ("5", "9-3", "-1-2", "1-2,", "a-b"):
        with pytest.raises(ValueError, match="not byte ranges"):
            wire.parse_ranges(bad)


@given(st.lists(st.tuples(st.integers(0, 2**62), st.integers(0, 2**62)).map(sorted).map(tuple), min_size=1))
def test_ranges_read_back_what_was_written(ranges):
    assert wire.parse_ranges(wire.format_ranges(ranges)) == ranges
