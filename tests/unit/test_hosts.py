"""Hosts as options name them, and files with tokens for such."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.errors import UsageError
from mpx.hosts import HostPattern, TokenFileChoice, parse_host, parse_token_file, parse_token_files


@pytest.mark.parametrize(
    ("text", "host", "port", "covered"),
    [
        ("dtn.example.org", "dtn.example.org", 443, True),
        ("DTN.example.org.", "dtn.EXAMPLE.org", 443, True),
        ("dtn.example.org", "dtn.example.org.", 443, True),
        ("dtn.example.org", "example.org", 443, False),
        ("example.org", "dtn.example.org", 443, False),
        ("dtn.example.org:8443", "dtn.example.org", 8443, True),
        ("dtn.example.org:8443", "dtn.example.org", 443, False),
        ("*.example.org", "pool7.example.org", 24001, True),
        ("*.example.org", "a.b.example.org", 24001, True),
        ("*.example.org", "example.org", 443, False),
        ("*.example.org", "evilexample.org", 443, False),
        ("*.example.org", ".example.org", 443, False),
        ("*.example.org", "example.org.evil.net", 443, False),
        ("*.example.org:8443", "pool7.example.org", 443, False),
        ("[2001:DB8::1]", "2001:db8::1", 443, True),
        ("[2001:db8::1]:8443", "2001:db8::1", 443, False),
        ("[2001:0db8:0:0::1]", "2001:db8::1", 443, True),
        ("[::1]", "0:0:0:0:0:0:0:1", 443, True),
        ("[::ffff:192.0.2.7]", "192.0.2.7", 443, False),
        ("192.0.2.7", "192.0.2.7", 443, True),
        ("bücher.example", "xn--bcher-kva.example", 443, True),
        ("*.BÜCHER.example:8443", "dtn.xn--bcher-kva.example", 8443, True),
        ("bücher.example", "bucher.example", 443, False),
    ],
)
def test_a_pattern_covers_servers(text: str, host: str, port: int, covered: bool) -> None:
    assert parse_host(text).covers(host, port) == covered


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "*",
            "*.",
            ".",
            "*.*",
            "a*.org",
            "https://a",
            "a/b",
            "u@a",
            "a b",
            "-a",
            "a\n",
            "ä .org",
            "ä/b",
        ),
        *("a:", "a:0", "a:00000", "a:65536", "a:1:2", "2001:db8::1", "[]"),
    ],
)
def test_what_names_no_host(text: str) -> None:
    with pytest.raises(UsageError, match="is not a host; write it as"):
        parse_host(text)


@pytest.mark.parametrize(
    "name", ["faß.de", "*.faß.de:8443", "FAẞ.de", "βόλος.com", "a\u200db.ir", "a\u200cb.ir"]
)
def test_what_others_read_as_another_host_is_refused(name: str) -> None:
    """Else the token would be for fass.de, which has another owner."""
    with pytest.raises(UsageError, match="mean different hosts; write the name"):
        parse_token_file(f"{name}=/token")


@given(st.text(alphabet="aZ.*:[]-_1\n@/ é", max_size=12))
def test_whatever_is_written_is_a_host_or_a_clear_error(text: str) -> None:
    try:
        found = parse_host(text)
    except UsageError as error:
        assert "is not a host" in str(error) or "is no name of a host" in str(error)
    else:
        assert found.host and 0 <= found.port < 65536
        assert found.host.startswith("*.") or found.covers(found.host, found.port or 1)


def test_a_file_with_a_token() -> None:
    assert parse_token_file("token") == parse_token_file("token") == TokenFileChoice("token")
    assert parse_token_file("/run/a=b") == TokenFileChoice("/run/a=b")
    assert parse_token_file("./a=b") == TokenFileChoice("./a=b")
    assert parse_token_file("a.org=/t=1") == TokenFileChoice("/t=1", HostPattern("a.org"))
    assert parse_token_file("[::1]:1094=t") == TokenFileChoice("t", HostPattern("::1", 1094))


@pytest.mark.parametrize("text", ["", "=", "=t", "a.org=", "a b=t", "/t\0"])
def test_what_is_no_file_with_a_token(text: str) -> None:
    with pytest.raises(UsageError):
        parse_token_file(text)


def test_the_narrowest_is_tried_first() -> None:
    given = ["all", "*.org=1", "*.example.org=2", "*.org:1=3", "a.example.org=4", "a.example.org:1=5"]
    assert [each.file for each in parse_token_files(given)] == ["5", "4", "3", "2", "1", "all"]
    assert parse_token_files(reversed(given)) == parse_token_files(given)


@pytest.mark.parametrize("twice", [("one", "two"), ("a.org=one", "A.org.=two")])
def test_two_files_for_one_host(twice: tuple[str, str]) -> None:
    with pytest.raises(UsageError, match="'one' and 'two' are for the same host"):
        parse_token_files(twice)
