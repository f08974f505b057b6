"""Names as paths of URLs and back: each name comes back, and no href becomes a name that leads elsewhere."""

from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mpx.endpoints.web.names import HrefError, child_name, decoded, encoded, is_href_of

NAMES = (
    st.binary(min_size=1, max_size=60)
    .map(lambda raw: raw.replace(b"/", b"").replace(b"\0", b"").decode("utf-8", "surrogateescape"))
    .filter(lambda name: name not in ("", ".", ".."))
)
TEXTS = st.text("/.%2eEfF?#;:@ \0ab\\\u00e9", max_size=40)
SAFE = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~"


# --- names that are sent ---------------------------------------------------------------------------


def test_what_a_path_may_not_carry_is_encoded() -> None:
    assert encoded("/a b;c?d#e%f+g/\n\x7f") == "/a%20b%3Bc%3Fd%23e%25f%2Bg/%0A%7F"
    assert encoded("caf\u00e9\udcff\u20ac") == "caf%C3%A9%FF%E2%82%AC"


@given(NAMES)
def test_encoded_names_are_plain_and_come_back(name: str) -> None:
    assert set(encoded(name)) <= {*SAFE, "%"}
    assert decoded(encoded(name)) == name


# --- hrefs of listings -----------------------------------------------------------------------------


@given(NAMES, st.sampled_from(["/", "/f/", "/f", "/a%20b/%C3%a9/", "/%ff/"]))
@example("a%2Fb", "/f/")
@example("#", "/f/")
@example("http:", "/")
def test_each_name_comes_back(name: str, folder: str) -> None:
    path = folder.rstrip("/") + "/" + encoded(name)
    for href in (path, path + "/", f"https://other.example:1/{path}", path.replace("/", "//")):
        assert child_name(href, folder) == name


@given(NAMES, NAMES, st.sampled_from(["/", "/f/", "/a%20b/%C3%a9/"]))
@example("50%20off", "50 off", "/")
def test_an_answer_about_a_name_is_told_from_those_about_others(name: str, other: str, folder: str) -> None:
    path, elsewhere = folder + encoded(name), folder + encoded(other)
    for href in (path, f"{path}/", f"https://other.example:1{path}"):
        assert is_href_of(href, path)
    # A server may encode nothing, so that what another name looks like encoded is taken for this one, too.
    assert is_href_of(elsewhere, path) == (name in (other, encoded(other)))
    assert is_href_of(path, f"/mapped{path}")  # by a proxy to a server that does not know of it
    assert not is_href_of(f"/other{path}", path)
    assert not is_href_of(folder, path)


@given(NAMES, st.sampled_from(["", ";#[]@!$&'()*+,=:", "\u00e9"]))
def test_names_that_are_encoded_in_another_way(name: str, plain: str) -> None:
    raw = name.encode("utf-8", "surrogateescape")
    other = "".join(f"%{byte:02x}" for byte in raw)
    assert child_name(f"/f/{other}", "/f") == name
    assert child_name("/f/" + quote(raw, safe=plain.replace("\u00e9", "")), "/f") == name


@pytest.mark.parametrize(
    ("href", "name"),
    [
        ("/caf\u00e9/a b", "a b"),
        ("/caf\u00e9/a b%20?#", "a b%20?#"),  # a blank tells that nothing is encoded
        ("http://h/caf\u00e9/%41<", "%41<"),
        ("/caf\u00e9/100%", "100%"),
        ("/caf\u00e9/%41", "A"),
        ("/caf%c3%A9/%61%20b/", "a b"),
        ("/caf%C3%A9/a;b", "a;b"),
        ("/caf%C3%A9/a#b", "a#b"),  # an href has no fragment (RFC 4918)
        ("/caf%C3%A9/\u00e9", "\u00e9"),
        ("//caf%C3%A9/x", "x"),  # no host: an href has one only behind a scheme
        ("/caf%C3%A9/...", "..."),
        ("/caf%C3%A9/a%5Cb", "a\\b"),
        ("/caf%C3%A9/%252F", "%2F"),
        ("DAVS://h/caf%C3%A9/x", "x"),
        ("/caf%C3%A9", None),
        ("/caf\u00e9//", None),
        ("https://[::1]:8443/caf%C3%A9/", None),
    ],
)
def test_hrefs_as_servers_write_them(href: str, name: str | None) -> None:
    assert child_name(href, "/caf%C3%a9/") == name


@given(NAMES, st.sampled_from([("/", "/"), ("/f/", "/f"), ("/a b/%C3%A9/", "/a%20b/%25C3%25A9/")]))
@example("%41", ("/f/", "/f/"))
def test_names_of_a_server_that_encodes_nothing(name: str, folder: tuple[str, str]) -> None:
    plain, asked = folder
    for end in ("", "/"):
        assert child_name(plain + name + end, asked, is_encoded=False) == name
    assert child_name(plain, asked, is_encoded=False) is None
    for hostile in ("..", ".", "a/b", "a\0"):
        with pytest.raises(HrefError):
            child_name(plain + hostile, asked, is_encoded=False)


def test_the_root_of_a_server() -> None:
    assert child_name("http://h", "/") is None
    assert child_name("/", "") is None
    assert child_name("http://h/x", "/") == "x"


@pytest.mark.parametrize(
    ("href", "why"),
    [
        ("/f/..", "'..' in its path"),
        ("/f/%2e%2E/", "'..' in its path"),
        ("/f/.", "'.' in its path"),
        ("/f/../f/x", "'..' in its path"),
        ("/f/a%2fb", "'a/b' in its path"),
        ("/f/%2F", "'/' in its path"),
        ("/f/a%00b", r"'a\\x00b' in its path"),
        ("/x", "outside of the folder"),
        ("/", "outside of the folder"),
        ("/ff/x", "outside of the folder"),
        ("/f%2Fx", "'f/x' in its path"),
        ("/f/x/y", "in a folder below"),
        ("/f/x?y", "with a query"),
        ("x", "neither a path nor a URL"),
        ("", "neither a path nor a URL"),
        ("f/x", "neither a path nor a URL"),
    ],
)
def test_hrefs_that_name_nothing_in_the_folder(href: str, why: str) -> None:
    with pytest.raises(HrefError, match=why):
        child_name(href, "/f/")


def test_a_message_shows_what_is_no_name_and_is_short() -> None:
    with pytest.raises(HrefError) as refused:
        child_name("/x\x1b[2J" + "x" * 10_000, "/f/")
    assert str(refused.value).startswith(r"'/x\x1b[2Jxxx") and len(str(refused.value)) < 300


@given(TEXTS, TEXTS, st.booleans())
def test_no_href_leads_elsewhere(href: str, folder: str, is_encoded: bool) -> None:
    try:
        name = child_name(href, folder, is_encoded=is_encoded)
    except HrefError:
        return
    assert name not in ("", ".", "..")
    assert name is None or not {"/", "\0"} & set(name)


def test_an_encoded_slash_is_that_of_the_url_that_was_asked() -> None:
    """In any other place it would make another name."""
    assert is_href_of("/a%2Fb/c", "/a%2fb/c")
    assert is_href_of("https://other/a%2Fb/", "/dav/a%2Fb")
    assert not is_href_of("/a%2Fb/c", "/a/b/c") and not is_href_of("/a/b/c", "/a%2Fb/c")
    with pytest.raises(HrefError):
        child_name("/a/b%2Fc", "/a/")
