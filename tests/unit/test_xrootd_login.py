"""What lets a copy in at a server of XRootD, and what its processes are told."""

import pytest

from mpx.endpoints.web.bearer_tokens import BearerTokens
from mpx.endpoints.xrootd.login import SUB_STREAMS, XrootdLogin
from mpx.endpoints.xrootd.options import XrootdOptions
from mpx.endpoints.xrootd.process import environment
from mpx.location import parse_location


def login(url: str, token: str = "", **proxy: str) -> XrootdLogin:
    tokens = BearerTokens(environment={"BEARER_TOKEN": token})
    made = XrootdLogin(parse_location(url), XrootdOptions(30.0, 60.0), tokens, proxy)
    made.is_written = True
    return made


def test_where_an_upload_has_several_connections() -> None:
    in_the_clear = login("root://host//d")
    assert in_the_clear.sub_streams == SUB_STREAMS
    told = environment(in_the_clear.options, "", {}, in_the_clear.sub_streams)
    assert told["XRD_SUBSTREAMSPERCHANNEL"] == str(SUB_STREAMS)
    in_the_clear.lost()
    assert in_the_clear.sub_streams == 1
    assert login("roots://host//d").sub_streams == 1
    assert login("root://host//d", token="a.b.c").sub_streams == 1  # shown inside TLS only
    reading = login("root://host//d")
    reading.is_written = False
    assert reading.sub_streams == 1


@pytest.mark.parametrize(
    ("url", "name"),
    [("root://host//d", "root://host/"), ("roots://alice@[::1]:99//d", "roots://alice@[::1]:99/")],
)
def test_a_server_as_the_library_names_it(url: str, name: str) -> None:
    assert login(url).url == name


def test_what_a_token_tells_of_its_end() -> None:
    assert not login("root://host//d", token="of.no.claims").is_outdated("of.no.claims")
    assert login("root://host//d", token="another").is_outdated("of.no.claims")
    assert login("root://host//d", token="has a blank").is_outdated("of.no.claims")
    assert login("root://host//d").admission is None
