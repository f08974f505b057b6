"""Where redirects lead: as RFC 3986 resolves references, and nowhere but to http and https."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.endpoints.web.headers import HeaderError
from mpx.endpoints.web.redirects import redirect_target, token_taken_out

BASE = "http://a/b/c/d;p?q"
LIKELY = st.text("htps:/dav.@?#%2e[]1;\\ \u00e9\n", max_size=60)


@pytest.mark.parametrize(
    ("location", "target"),
    [  # RFC 3986, 5.4; an empty one, and what has another scheme, is refused
        ("g", "b/c/g"), ("./g", "b/c/g"), ("g/", "b/c/g/"), ("/g", "g"), ("?y", "b/c/d;p?y"),
        ("g?y", "b/c/g?y"), ("#s", "b/c/d;p?q"), ("g#s", "b/c/g"), ("g?y#s", "b/c/g?y"), (";x", "b/c/;x"),
        ("g;x", "b/c/g;x"), ("g;x?y#s", "b/c/g;x?y"), (".", "b/c/"), ("./", "b/c/"),
        ("..", "b/"), ("../", "b/"), ("../g", "b/g"), ("../..", ""), ("../../", ""), ("../../g", "g"),
        ("../../../g", "g"), ("../../../../g", "g"), ("/./g", "g"), ("/../g", "g"), ("g.", "b/c/g."),
        (".g", "b/c/.g"), ("g..", "b/c/g.."), ("..g", "b/c/..g"), ("./../g", "b/g"), ("./g/.", "b/c/g/"),
        ("g/./h", "b/c/g/h"), ("g/../h", "b/c/h"), ("g;x=1/./y", "b/c/g;x=1/y"), ("g;x=1/../y", "b/c/y"),
        ("g?y/./x", "b/c/g?y/./x"), ("g?y/../x", "b/c/g?y/../x"), ("g#s/../x", "b/c/g"),
        ("?", "b/c/d;p?"), ("//a/g//h", "g//h"), ("/g//../h", "g/h"),
    ],
)  # fmt: skip
def test_references_of_rfc_3986(location: str, target: str) -> None:
    assert redirect_target(location, BASE) == f"http://a/{target}"


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("https://other:8443/x?authz=a%20b&c=%2F", "https://other:8443/x?authz=a%20b&c=%2F"),
        ("HTTP://h", "http://h/"),
        ("http://h:?x", "http://h/?x"),
        ("//h:1/x", "http://h:1/x"),
        ("davs://h/x", "https://h/x"),
        ("DAV://[fd00::1]:80/x", "http://[fd00::1]:80/x"),
        (" /a b ", "http://a/a%20b"),
        ("/caf\u00c3\u00a9%zz\\", "http://a/caf%C3%A9%25zz%5C"),  # UTF-8, as http.client has it
        ("/a@b:c", "http://a/a@b:c"),
        ("./x:y", "http://a/b/c/x:y"),
    ],
)
def test_locations_as_servers_write_them(location: str, target: str) -> None:
    assert redirect_target(location, BASE) == target


def test_the_url_that_was_asked_may_have_no_path_and_a_scheme_of_webdav() -> None:
    assert redirect_target("x", "davs://h") == "https://h/x"
    assert redirect_target("?x", "http://h") == "http://h/?x"


@pytest.mark.parametrize(
    ("location", "why"),
    [
        ("", "0 characters"),
        ("/" * 20_000, "20000 characters"),
        ("/" + " " * 9000 + "x", "270"),  # when it is encoded
        ("ftp://h/x", "another scheme"),
        ("javascript:alert(1)", "another scheme"),
        ("file:///etc/passwd", "another scheme"),
        ("g:h", "another scheme"),
        ("http:g", "no host"),
        ("http:///x", "no host"),
        ("///x", "no host"),
        ("http://:80/", "no host"),
        ("http://h:0/", "no host"),
        ("http://h:65536/", "no host"),
        ("http://h:8_0/", "no host"),
        ("http://h:\u00b2/", "no host"),
        ("http://h\\.example/", "no host"),
        ("http://h%2Fx/", "no host"),
        ("http://h\u00e9/", "no host"),
        ("http://-h/", "no host"),
        ("http://[::1/", "no host"),
        ("http://[fe80::1%25eth0]/", "no host"),
        ("http://[1:2]/", "no address"),
        ("http://u@h/", "user name or a password"),
        ("//u:p@h/", "user name or a password"),
        ("/x\r\nHost: y", "control character"),
        ("/x#\0", "control character"),
        ("/x\x7f", "control character"),
        ("/\u20ac", "no header can hold"),
    ],
)
def test_where_no_redirect_leads(location: str, why: str) -> None:
    with pytest.raises(HeaderError, match=why):
        redirect_target(location, BASE)


def test_no_message_tells_a_password_or_a_token() -> None:
    for location in (
        "http://u:secret@h/",
        "ftp://u:secret@h/",
        "ftp://h/?secret",
        "ftp://h#secret",
        "//h!?secret",
    ):
        with pytest.raises(HeaderError) as refused:
            redirect_target(location, BASE)
        assert "secret" not in str(refused.value)


@given(LIKELY | st.text(), st.sampled_from([BASE, "https://[::1]:8443/", "davs://h"]))
def test_all_that_a_redirect_leads_to_is_plain(location: str, base_url: str) -> None:
    try:
        target = redirect_target(location, base_url)
    except HeaderError as error:
        assert len(str(error)) < 2500
        return
    assert target.startswith(("http://", "https://")) and "@" not in target.split("/")[2]
    assert target.isascii() and target.isprintable() and not {" ", "#"} & set(target)
    assert not {".", ".."} & set(target.partition("?")[0].split("/"))
    assert redirect_target(target, base_url) == target


@pytest.mark.parametrize(
    ("target", "path", "token"),
    [
        ("/a?authz=Bearer%20x.y", "/a", "Bearer x.y"),
        ("/a?b=1&authz=Bearer%20x&c", "/a?b=1&c", "Bearer x"),
        ("/a?authz=Bearer%20x&authz=Bearer%20y", "/a", "Bearer x"),
        ("/a", "/a", ""),
        ("/a?authz", "/a?authz", ""),
        ("/a?authz=Basic%20x", "/a?authz=Basic%20x", ""),
        ("/a?authz=Bearer%20x%0d%0aHost:%20y", "/a?authz=Bearer%20x%0d%0aHost:%20y", ""),
        ("/authz=Bearer%20x", "/authz=Bearer%20x", ""),
    ],
)
def test_a_token_is_taken_out_of_a_url(target: str, path: str, token: str) -> None:
    assert token_taken_out(target) == (path, token)
