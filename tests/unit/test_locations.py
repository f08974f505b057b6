"""What a user may write as SRC or DST: schemes, and hosts as scp takes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.errors import UsageError
from mpx.location import Location, parse_location, shown_place


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("host:data/x", Location("ssh", "data/x", "host")),
        ("host:/data/x", Location("ssh", "/data/x", "host")),
        ("host:~/x", Location("ssh", "x", "host")),
        ("host:", Location("ssh", ".", "host")),
        ("me@host:a:b@c", Location("ssh", "a:b@c", "host", user="me")),
        ("me@realm@host:x", Location("ssh", "x", "host", user="me@realm")),
        ("[2001:db8::7]:x", Location("ssh", "x", "2001:db8::7")),
        ("me@[fe80::1%eth0]:x", Location("ssh", "x", "fe80::1%eth0", user="me")),
        ("ssh://Host/x", Location("ssh", "/x", "Host")),  # settings of ssh tell capitals apart
        ("ssh://me@host:2222/~/x", Location("ssh", "x", "host", 2222, "me")),
        ("ssh://host", Location("ssh", "/", "host")),
        ("mpx://Host/x", Location("mpx", "/x", "host", 2811)),
        ("mpx://[::1]:99/x", Location("mpx", "/x", "::1", 99)),
        ("https://bücher.example/x", Location("https", "/x", "xn--bcher-kva.example", 443)),
        ("https://xn--fa-hia.de/x", Location("https", "/x", "xn--fa-hia.de", 443)),
        ("https://[fe80::1%25eth0]/x", Location("https", "/x", "fe80::1%eth0", 443)),
        ("https://[fe80::1%eth0]/x", Location("https", "/x", "fe80::1%eth0", 443)),
        ("./host:x", Location("file", "./host:x")),
        ("dir/host:x", Location("file", "dir/host:x")),
        ("/host:x", Location("file", "/host:x")),
        (":x", Location("file", ":x")),
        ("x", Location("file", "x")),
    ],
)
def test_what_it_means(text: str, expected: Location) -> None:
    assert parse_location(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "ssh://-oProxyCommand=x/y",
        "ssh://a;b/y",
        "ssh://-l@host/y",
        "ssh://me:secret@host/x",
        "mpx://me@host/x",
        "-host:x",
        "ho st:x",
        "h\tost:x",
        "a$b:x",
        "ü:x",
        "host:a\nb",
        "gsiftp:/host/x",
        f"https://{'ü' * 80}.example/x",
        "https://faß.de/x",
        "davs://FAẞ.de:8443/x",
        "gsiftp://faß.de/x",
        "https://βόλος.com/x",
        "https://a\u200db.ir/x",
        "https://a\u200cb.ir/x",
    ],
)
def test_what_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_location(text)
    assert "secret" not in str(refused.value)


@given(st.text(max_size=60))
def test_any_text_is_a_location_or_a_clear_error(text: str) -> None:
    try:
        found = parse_location(text)
    except UsageError as error:
        assert str(error)
    else:
        assert found.scheme in ("file", "ftp", "mpx", "ssh")
        if found.scheme == "ssh":
            assert not found.host.startswith("-")
            assert not found.user.startswith("-")


@given(
    st.sampled_from(["host", "me@host", "[::1]"]),
    st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"]), min_size=1),
)
def test_a_place_over_ssh_is_read_as_it_is_shown(where: str, path: str) -> None:
    try:
        found = parse_location(f"{where}:{path}")
    except UsageError:
        return  # there is such a file
    if found.scheme == "ssh":
        assert parse_location(str(found)) == found


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/a%20b", "/a%20b"),  # a local name is not encoded
        ("/\u00fc", "/\u00fc"),
        ("ftp://h:2811/%C3%BC%20b%25", "ftp://h:2811/\u00fc b%"),
        ("mpx://h:1/a%20b mpx://h:1/c", "mpx://h:1/a b mpx://h:1/c"),
        ("ssh://h/caf%E9", "'ssh://h/caf\\xe9'"),
        ("gsiftp://h/a%1B%0A", "'gsiftp://h/a\\x1b\\x0a'"),
        ("/a\nb", "'/a\\x0ab'"),
    ],
)
def test_places_are_shown_with_their_names_as_they_are(text: str, shown: str) -> None:
    assert shown_place(text) == shown
