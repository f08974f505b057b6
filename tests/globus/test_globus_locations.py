"""globus://COLLECTION/PATH, as users write it."""

import pytest

from mpx.errors import UsageError
from mpx.location import parse_location

ID = "ddb59aef-6d04-11e5-ba46-22000b92c6ec"


@pytest.mark.parametrize(
    ("text", "name"),
    [("/data/x%20y", "/data/x y"), ("", "/"), ("/", "/"), ("/~/x", "/~/x"), ("/a?b#c", "/a?b#c")],
)
def test_names(text: str, name: str) -> None:
    place = parse_location(f"globus://{ID.upper()}{text}")
    assert (place.scheme, place.host, place.name) == ("globus", ID, name)
    assert parse_location(str(place)) == place


@pytest.mark.parametrize("host", ["", "dtn.example.org", f"{ID}:443", f"me@{ID}"])
def test_what_is_no_collection(host: str) -> None:
    with pytest.raises(UsageError, match="write globus://COLLECTION/PATH"):
        parse_location(f"globus://{host}/x")
