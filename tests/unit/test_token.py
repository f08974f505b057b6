"""Tokens of the client: how they are read, where they come from, who may read their files."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.endpoints.ftp.token import (
    Token,
    accepted_key,
    is_key,
    parse_token,
    save,
    saved_file,
    token_for,
)
from mpx.errors import AuthenticationError, UsageError
from mpx.location import parse_location

KEY, SECRET = "k" * 43, "s" * 43
TEXT = f"mpx1.{KEY}.{SECRET}"
HERE = parse_location("mpx://dtn.example.org:2811/")


def test_a_token_is_read() -> None:
    assert parse_token(f" {TEXT}\n", "here") == Token(KEY, SECRET)
    assert parse_token(f"mpx1..{SECRET}", "here") == Token("", SECRET)  # by its certificate authority
    assert parse_token(TEXT, "here").text == TEXT
    assert SECRET not in repr(parse_token(TEXT, "here"))


@pytest.mark.parametrize("text", ["", "mpx1", f"mpx2.{KEY}.{SECRET}", f"{TEXT}x", TEXT[:-1], f"x{TEXT}"])
def test_what_is_no_token_is_not_shown(text: str) -> None:
    with pytest.raises(UsageError, match="what MPX_TOKEN holds is not a token") as refused:
        token_for(HERE, {"MPX_TOKEN": text or "?"})
    assert not text or text not in str(refused.value) or text == "mpx1"


@given(st.text(max_size=150))
def test_any_text_is_a_token_or_a_clear_error(text: str) -> None:
    try:
        parse_token(text, "here")
    except UsageError as error:
        assert "is not a token" in str(error)


def test_where_a_token_comes_from(tmp_path: Path) -> None:
    with pytest.raises(AuthenticationError, match=r"mpx token save mpx://dtn\.example\.org:2811"):
        token_for(HERE, {})
    save(saved_file(HERE, "token"), TEXT)
    assert token_for(HERE, {}) == Token(KEY, SECRET)
    (tmp_path / "file").write_text(f"mpx1.{KEY}.{'f' * 43}\n")
    (tmp_path / "file").chmod(0o600)
    assert token_for(HERE, {"MPX_TOKEN_FILE": str(tmp_path / "file")}).secret == "f" * 43
    other = f"mpx1.{KEY}.{'e' * 43}"
    assert token_for(HERE, {"MPX_TOKEN": other, "MPX_TOKEN_FILE": "/nowhere"}).secret == "e" * 43
    with pytest.raises(AuthenticationError):
        token_for(parse_location("mpx://other.example.org/"), {})  # a token is for one server


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_token_that_others_may_read_is_refused(mode: int) -> None:
    path = saved_file(HERE, "token")
    save(path, TEXT)
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(mode)
    with pytest.raises(UsageError, match="chmod 600"):
        token_for(HERE, {})


def test_a_file_that_is_not_there_is_told() -> None:
    with pytest.raises(UsageError, match="no file '/nowhere', which MPX_TOKEN_FILE names"):
        token_for(HERE, {"MPX_TOKEN_FILE": "/nowhere"})


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo", 0o600)
    with pytest.raises(UsageError, match="not a regular file"):
        token_for(HERE, {"MPX_TOKEN_FILE": str(tmp_path / "fifo")})


def test_an_accepted_key_takes_the_place_of_the_one_that_it_replaces() -> None:
    assert accepted_key(HERE, KEY) == ""
    save(saved_file(HERE, "key"), f"{KEY} {'n' * 43}")
    assert accepted_key(HERE, KEY) == "n" * 43
    assert accepted_key(HERE, "o" * 43) == ""  # of another token: it may be for another server
    save(saved_file(HERE, "key"), "damaged")
    assert accepted_key(HERE, KEY) == ""
    assert not is_key(KEY + "x")


def test_names_of_hosts_stay_in_their_folder() -> None:
    for host in ("[2001:db8::7]", "a%2f..%2fb", ".."):
        path = saved_file(parse_location(f"mpx://{host}:5/"), "token")
        assert path.parent == saved_file(HERE, "token").parent
