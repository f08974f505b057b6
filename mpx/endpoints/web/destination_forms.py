"""How a MOVE names where a file is to go: behind a proxy a server knows itself by another URL."""

import enum
import threading
from collections.abc import Collection, Iterator

from mpx.endpoints.web.url import WebUrl

# Answers to a MOVE whose Destination seems to be at another server, of nginx and Apache
BAD_REQUEST, BAD_GATEWAY = 400, 502
SEEM_FOREIGN = (BAD_REQUEST, BAD_GATEWAY)


class DestinationForm(enum.Enum):
    """In the order in which they are tried."""

    URL = enum.auto()
    PATH = enum.auto()  # which nginx takes, and Apache does not
    OTHER_SCHEME = enum.auto()  # the URL of the server behind a proxy that ends TLS for it

    def of(self, to: WebUrl) -> str:
        """Return a Destination."""
        if self is DestinationForm.PATH:
            return to.target
        is_other = self is DestinationForm.OTHER_SCHEME
        return f"{to.origin.other_scheme() if is_other else to.origin}{to.target}"


class DestinationForms:
    """Which form one server takes. For any thread: all that rename there use what one of them has found."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken: DestinationForm | None = None  # with `_lock` held

    @property
    def is_known(self) -> bool:
        """Whether a form was seen to be taken."""
        with self._lock:
            return self._taken is not None

    def first(self) -> DestinationForm:
        """Return the form to use, as far as is known."""
        return self._next(()) or DestinationForm.URL

    def in_turn(self) -> Iterator[DestinationForm]:
        """Give forms to try until one is taken: each, and only the one that is known once one is.

        A file that is refused in each shows nothing of a form: a server may refuse its name.
        """
        tried: list[DestinationForm] = []
        while form := self._next(tried):
            tried.append(form)
            yield form

    def _next(self, tried: Collection[DestinationForm]) -> DestinationForm | None:
        with self._lock:
            forms = DestinationForm if self._taken is None else (self._taken,)
        return next((form for form in forms if form not in tried), None)

    def taken(self, form: DestinationForm) -> None:
        """Note that the server has taken a form: a file has its new name, or another has that already."""
        with self._lock:
            self._taken = self._taken or form
