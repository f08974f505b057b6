"""Which names are asked once more with a slash."""

import pytest

from mpx.endpoints.web.slashes import SlashedNames


@pytest.mark.parametrize(
    ("location", "name", "is_dav", "may"),
    [
        ("/a/b/", "/a/b", True, True),
        ("/a/b/", "/a/b/", True, False),  # it has one
        ("/a/b/", "/a", True, False),
        ("/a/b", "/a/b", True, False),  # a file to come, which would cost a round trip
        ("/a/b", "/a/b", False, True),
        ("/a", "/a", True, True),
        ("/a/b", "/a", True, True),
        ("/a/b", "/a/c", False, False),
        ("/a", "/", False, False),
        ("/", "/", False, False),
        ("/", "", False, False),
    ],
)
def test_names_that_may_be_folders(location: str, name: str, is_dav: bool, may: bool) -> None:
    assert SlashedNames(location).may_hold(name, is_dav=is_dav) is may
