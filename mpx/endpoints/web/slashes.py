"""Folders that may be served by their names with a slash at the end only, as nginx does by `location /a/`."""

import posixpath


class SlashedNames:
    """For what a copy names at a server: a question of each other name would cost a round trip. Pure."""

    def __init__(self, location: str) -> None:
        """`location`: the name as the user has written it."""
        self._plain = location.rstrip("/")
        self._is_slashed = location.endswith("/")
        self._parent = posixpath.dirname(self._plain)

    def may_hold(self, name: str, *, is_dav: bool) -> bool:
        """Tell whether a name that is missing may be that of a folder once it has a slash at its end.

        `is_dav`: the server speaks WebDAV where the name is. Then a name that was written without a slash is
        that of a file to come, but right below the root, which the server may have nothing at.
        """
        if not name or name.endswith("/"):
            return False
        if name == self._plain:
            return self._is_slashed or not is_dav or self._parent == "/"
        return name == self._parent and not self._is_slashed
