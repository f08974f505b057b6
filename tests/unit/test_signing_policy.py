"""Signing policies of CAs, as grids hand them out."""

import fnmatch
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.net.x509.signing_policy import may_sign, parse_policy

CA = "/C=CH/O=Grid/CN=CA"
PLAIN = """
# ca-policy
 access_id_CA      X509    '/C=CH/O=Grid/CN=CA'
 pos_rights        globus  CA:sign
 cond_subjects     globus  '"/C=CH/O=Grid/*" "/C=CH/O=Other/CN=?"'
"""


@pytest.mark.parametrize(
    ("subject", "fine"),
    [
        ("/C=CH/O=Grid/CN=Alice", True),
        ("/C=CH/O=Grid/", True),
        ("/C=CH/O=Other/CN=x", True),
        ("/C=CH/O=Other/CN=xy", False),
        ("/C=CH/O=Elsewhere/CN=Alice", False),
        ("/c=ch/o=grid/CN=Alice", False),
        ("x/C=CH/O=Grid/CN=Alice", False),
    ],
)
def test_what_a_ca_may_sign(subject: str, fine: bool) -> None:
    assert may_sign(parse_policy(PLAIN), CA, subject) == fine
    assert not may_sign(parse_policy(PLAIN), "/C=CH/O=Grid/CN=Another", subject)


def test_several_cas_in_one_file() -> None:
    text = PLAIN + PLAIN.replace("CN=CA", "CN=Two").replace("O=Grid/*", "O=Second/*")
    grants = parse_policy(text)
    assert may_sign(grants, "/C=CH/O=Grid/CN=Two", "/C=CH/O=Second/CN=a")
    assert not may_sign(grants, CA, "/C=CH/O=Second/CN=a")


def test_what_is_denied_is_not_granted_by_another_line() -> None:
    denied = PLAIN + "neg_rights globus CA:sign\ncond_subjects globus '\"/C=CH/O=Grid/CN=Eve\"'\n"
    grants = parse_policy(denied)
    assert may_sign(grants, CA, "/C=CH/O=Grid/CN=Alice")
    assert not may_sign(grants, CA, "/C=CH/O=Grid/CN=Eve")


def test_rights_that_are_not_about_signing_grant_nothing() -> None:
    grants = parse_policy(PLAIN.replace("CA:sign", "CA:other"))
    assert not may_sign(grants, CA, "/C=CH/O=Grid/CN=Alice")


def test_one_pattern_without_quotes_of_its_own() -> None:
    grants = parse_policy(
        "access_id_CA X509 '/CN=CA'\npos_rights globus CA:sign\ncond_subjects globus '/O=Lab/*'"
    )
    assert may_sign(grants, "/CN=CA", "/O=Lab/CN=a")


@pytest.mark.parametrize(
    "text",
    [
        "access_id_CA X509",
        "access_id_CA X509 '/CN=CA' more",
        "access_id_CA X509 '/CN=CA",
        "something else entirely",
        "access_id_USER X509 '/CN=a'",
    ],
)
def test_what_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"line|quote"):
        parse_policy(text)


@given(st.text("ab*?/", max_size=12), st.text("ab/", max_size=12))
def test_patterns_mean_what_they_mean_elsewhere(pattern: str, name: str) -> None:
    text = f"access_id_CA X509 '/CN=CA'\npos_rights globus CA:sign\ncond_subjects globus '\"{pattern}\"'"
    expected = re.fullmatch(fnmatch.translate(pattern), name) is not None
    assert may_sign(parse_policy(text), "/CN=CA", name) == expected


@given(st.text(max_size=300))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_policy(text)
    except ValueError:
        return
