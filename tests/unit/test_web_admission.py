"""Until when a web server lets us in, as a copy is told of it."""

from pathlib import Path

import pytest
from json_web_tokens import jwt

from mpx.endpoints.web.access import WebAccess
from mpx.endpoints.web.options import WebOptions
from mpx.location import parse_location

UNTIL_S = 1_790_000_000.0


def until_s(url: str) -> float | None:
    admission = WebAccess(parse_location(url), WebOptions()).admission
    return admission.until_s if admission else None


def test_a_token_lets_in_until_it_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEARER_TOKEN", jwt(exp=UNTIL_S))
    assert until_s("davs://dtn.example.org/file") == until_s("https://dtn.example.org/file") == UNTIL_S


@pytest.mark.parametrize("url", ["http://dtn.example.org/file", "davs://alice@dtn.example.org/file"])
def test_where_no_token_is_shown_none_expires(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEARER_TOKEN", jwt(exp=UNTIL_S))
    assert until_s(url) is None


def test_a_file_that_cannot_be_read_now_ends_no_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever needs the token says so."""
    monkeypatch.setenv("BEARER_TOKEN_FILE", str(tmp_path / "missing"))
    assert until_s("davs://dtn.example.org/file") is None
