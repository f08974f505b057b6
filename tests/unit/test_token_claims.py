"""What a token says of itself is read from whatever there is, and nothing of it ever raises."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from json_web_tokens import encoded, jwt

from mpx.endpoints.web.token_claims import TokenClaims, read_claims

GOOD, MANY_DIGITS = b'{"exp":1}', b'{"exp":' + b"9" * 9000 + b"}"
NOTHING = TokenClaims()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)
CLAIMS = st.fixed_dictionaries({}, optional=dict.fromkeys(("exp", "nbf", "scope", "aud"), JSON))


def test_a_token_is_read() -> None:
    token = jwt(
        exp=1790000000, nbf=1789996400.5, scope="storage.read:/ storage.modify:/data", aud="https://dtn.org"
    )
    assert read_claims(token) == TokenClaims(
        1790000000, 1789996400.5, "storage.read:/ storage.modify:/data", "https://dtn.org"
    )
    assert read_claims(jwt(aud=["one", "two"], scope=["a", "b"])) == TokenClaims(
        scopes="a b", audience="one two"
    )
    assert read_claims(jwt()) == NOTHING


@pytest.mark.parametrize("padding", range(4))
def test_the_length_of_the_claims_does_not_matter(padding: int) -> None:
    assert read_claims(jwt(exp=7, pad="x" * padding)).expires_s == 7


@pytest.mark.parametrize("value", [True, "1790000000", None, [1], {}, float("nan"), float("inf"), 10**400])
def test_what_is_no_time(value: Any) -> None:
    assert read_claims(jwt(exp=value, nbf=value)) == NOTHING


@pytest.mark.parametrize(
    "token",
    [
        "",
        "opaque",
        "MDAxY2xvY2F0aW9uIE9wdGlvbmFsCg",  # a macaroon without caveats
        "..",
        "a.b.c",
        f"a.{encoded(b'[1]')}.c",
        f"a.{encoded(bytes([0xFF, 0xFE, 0x00]))}.c",
        f"a.{encoded(b'{')}.c",
        f"a.{encoded(b'[' * 60_000)}.c",
        f"a.{encoded(MANY_DIGITS)}.c",
        f"a.{encoded(GOOD)}\u00e9.c",
        f"a.{encoded(GOOD)}.c.d.e",  # encrypted
        f"a.!{encoded(GOOD)}.c",
    ],
    ids=lambda token: token[:20],
)
def test_what_says_nothing(token: str) -> None:
    assert read_claims(token) == NOTHING


def macaroon(*caveats: str) -> str:
    """One as XRootD makes it: packets, each with its length in hex before it."""
    lines = ["location here", "identifier 7", *(f"cid {each}" for each in caveats), "signature \x80\xff"]
    packets = [f"{len(line) + 5:04x}{line}\n".encode("latin-1") for line in lines]
    return base64.urlsafe_b64encode(b"".join(packets)).decode()


END_S = 1795938360.0  # 2026-11-29 07:46:00 UTC


def test_until_when_a_macaroon_lasts() -> None:
    once, ends = "activity:DOWNLOAD", "before:2026-11-29T07:46:00Z"
    for token in (
        macaroon(once, ends),
        macaroon(once, ends).rstrip("="),
        macaroon(ends, "before:2027-01-01T00:00:00Z"),  # the first of several
        macaroon("before:2027-01-01T00:00:00Z", ends, once),
        macaroon("before:2026-11-29T07:46:00.123456Z"),
        base64.b64encode(b"\x02\x02\x04some\x00\x02\x1b" + ends.encode() + b"\xff\xfe").decode(),
    ):
        assert read_claims(token) == TokenClaims(END_S)
    for caveat in (once, "before:soon", "before:2026-13-29T07:46:00Z", "before:2026-11-29T07:46:00", ""):
        assert read_claims(macaroon(caveat)) == NOTHING


@given(
    st.binary(max_size=100),
    st.sampled_from([b"", b"before:0000-00-00T00:00:00Z", b"before:9999-12-31T23:59:59Z"]),
)
def test_no_macaroon_raises(noise: bytes, caveat: bytes) -> None:
    token = base64.urlsafe_b64encode(noise + caveat + noise).decode()
    assert isinstance(read_claims(token), TokenClaims)


@given(st.text(alphabet=st.characters(), max_size=200) | st.from_regex(r"[\w.=-]+\.[\w.=-]*\.\w*"))
def test_no_text_raises(token: str) -> None:
    assert isinstance(read_claims(token), TokenClaims)


@given(st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
def test_no_content_raises(content: bytes) -> None:
    assert isinstance(read_claims(f"a.{encoded(content)}.c"), TokenClaims)


@given(CLAIMS)
def test_claims_of_any_kind_are_read_or_left_out(claims: dict[str, Any]) -> None:
    found = read_claims(jwt(**claims))
    for name, seconds in (("exp", found.expires_s), ("nbf", found.begins_s)):
        assert seconds is None or seconds == pytest.approx(float(claims[name]))
    for text in (found.scopes, found.audience):
        assert text is None or (text and not set(text) & set("\n\r\x1b\x7f\u2028"))
