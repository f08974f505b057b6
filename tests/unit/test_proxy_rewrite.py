"""The addresses in the FTP dialogue, against literal lines of real servers and clients."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpx_lab.proxy.rewrite import LONGEST_LINE, LineRewriter

REPLIES = b"".join(
    [
        b"220 host GridFTP Server 13.24 (1,2,3,4,5,6) ready.\r\n",
        b"227 Entering Passive Mode (127,0,0,1,183,31)\r\n",
        b"229 Entering Extended Passive Mode (|||59485|)\r\n",
        b"229-Entering Striped Passive Mode.\r\n 127,0,0,1,152,221\r\n |2|::1|44209|\r\n229 End\r\n",
        b"127 Entering Passive Mode (10,0,0,2,1,0)\r\n",
        b"250-status of 227 x\r\n227 Entering Passive Mode (127,0,0,1,183,31)\r\n250 End.\r\n",
        b"227 Entering Passive Mode (127,0,0,999,1,1)\r\n",
        b"213 67108864\r\n",
    ]
)
REWRITTEN_REPLIES = b"".join(
    [
        b"220 host GridFTP Server 13.24 (1,2,3,4,5,6) ready.\r\n",
        b"227 Entering Passive Mode (127,9,9,9,19,137)\r\n",
        b"229 Entering Extended Passive Mode (|||5001|)\r\n",
        b"229-Entering Striped Passive Mode.\r\n 127,9,9,9,19,137\r\n |2|::9|5001|\r\n229 End\r\n",
        b"127 Entering Passive Mode (127,9,9,9,19,137)\r\n",
        b"250-status of 227 x\r\n227 Entering Passive Mode (127,0,0,1,183,31)\r\n250 End.\r\n",
        b"227 Entering Passive Mode (127,0,0,999,1,1)\r\n",
        b"213 67108864\r\n",
    ]
)
ANNOUNCED_BY_SERVER = [
    ("127.0.0.1", 46879),
    ("", 59485),
    ("127.0.0.1", 39133),
    ("::1", 44209),
    ("10.0.0.2", 256),
]


def rewriter(asked: list[tuple[str, int]], *, from_server: bool) -> LineRewriter:
    def open_listener(host: str, port: int) -> tuple[str, int]:
        asked.append((host, port))
        return ("::9" if ":" in host else "127.9.9.9"), 5001

    return LineRewriter(open_listener, from_server=from_server)


def test_replies_of_a_server() -> None:
    asked: list[tuple[str, int]] = []
    assert rewriter(asked, from_server=True).feed(REPLIES) == REWRITTEN_REPLIES
    assert asked == ANNOUNCED_BY_SERVER


@given(cuts=st.lists(st.integers(0, len(REPLIES)), max_size=20))
def test_it_does_not_matter_how_the_bytes_arrive(cuts: list[int]) -> None:
    asked: list[tuple[str, int]] = []
    under_test = rewriter(asked, from_server=True)
    bounds = [0, *sorted(cuts), len(REPLIES)]
    pieces = [REPLIES[begin:end] for begin, end in itertools.pairwise(bounds)]
    assert b"".join(map(under_test.feed, pieces)) == REWRITTEN_REPLIES
    assert asked == ANNOUNCED_BY_SERVER


@pytest.mark.parametrize(
    ("command", "rewritten", "announced"),
    [
        (b"PORT 10,0,0,7,156,64\r\n", b"PORT 127,9,9,9,19,137\r\n", [("10.0.0.7", 40000)]),
        (b"port 10,0,0,7,156,64\r\n", b"port 127,9,9,9,19,137\r\n", [("10.0.0.7", 40000)]),
        (b"EPRT |1|10.0.0.7|40000|\r\n", b"EPRT |1|127.9.9.9|5001|\r\n", [("10.0.0.7", 40000)]),
        (b"EPRT |2|fe80::1|40000|\r\n", b"EPRT |2|::9|5001|\r\n", [("fe80::1", 40000)]),
        (
            b"SPOR 10,0,0,7,156,64 |2|::1|7|\r\n",
            b"SPOR 127,9,9,9,19,137 |2|::9|5001|\r\n",
            [("10.0.0.7", 40000), ("::1", 7)],
        ),
        (b"RETR PORT 10,0,0,7,156,64\r\n", b"RETR PORT 10,0,0,7,156,64\r\n", []),
        (b"STOR |1|10.0.0.7|40000|\r\n", b"STOR |1|10.0.0.7|40000|\r\n", []),
        (b"PORT 0,0,0,0,0,0\r\n", b"PORT 0,0,0,0,0,0\r\n", []),
        (b"EPRT |1|10.0.0.7|70000|\r\n", b"EPRT |1|10.0.0.7|70000|\r\n", []),
    ],
)
def test_commands_of_a_client(command: bytes, rewritten: bytes, announced: list[tuple[str, int]]) -> None:
    asked: list[tuple[str, int]] = []
    assert rewriter(asked, from_server=False).feed(command) == rewritten
    assert asked == announced


@given(st.binary(max_size=200))
def test_nothing_is_lost_of_what_is_no_ftp(data: bytes) -> None:
    under_test = rewriter([], from_server=False)
    assert under_test.feed(data) + under_test.flush() == data


def test_a_line_without_end_is_passed_on() -> None:
    under_test = rewriter([], from_server=True)
    assert under_test.feed(b"x" * LONGEST_LINE) == b""
    assert under_test.feed(b"x") == b"x" * (LONGEST_LINE + 1)
