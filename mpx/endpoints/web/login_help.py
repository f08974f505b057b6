"""What to do where a web server asks for credentials and got none. Pure."""

from collections.abc import Collection

from mpx.location import Location

IN_THE_CLEAR = "credentials are not sent in the clear; use https:// or davs://"


def login_help(location: Location, with_token: str, schemes: Collection[str]) -> str:
    """Return how to give a password and a token (`with_token`), that first which the server asks for.

    `schemes`: the ways to log in that it offers, see headers.login_schemes.
    """
    url = f"{location.scheme}://USER@{location.authority}"
    with_password = (
        f"put user and password for {location.host} into ~/.netrc, or write {url} and put the password into "
        "MPX_PASSWORD"
    )
    asks_for_password = "basic" in {each.lower() for each in schemes}
    ways = (with_password, with_token) if asks_for_password else (with_token, with_password)
    return "; or ".join(ways)
