"""Questions to S3 that are answered in XML, or by headers; a bucket of another region is found.

Credentials that have expired are renewed.
"""

from collections.abc import Callable, Mapping, Sequence

from mpx.endpoints.s3.access import S3Access
from mpx.endpoints.s3.answer import S3Answer, S3AnswerError
from mpx.endpoints.s3.aws_session import HASH
from mpx.endpoints.web.dialogue import WebDialogue
from mpx.endpoints.web.refusals import REDIRECTS, is_success
from mpx.endpoints.web.reply import HttpReply
from mpx.endpoints.web.url import WebUrl
from mpx.errors import ConnectionLost, MpxError
from mpx.text import shown

LARGEST_ANSWER_BYTES = 64 << 20  # a thousand keys of 1024 bytes, each of which is encoded, have 4 MiB
MOST_MOVES = 2  # to another region, or to other credentials, for one question
_ELSEWHERE = (*REDIRECTS, 400)  # a signature for another region is malformed

Query = Mapping[str, str | int | None]


class S3Questions:
    """For one thread. `kind`: of the errors."""

    def __init__(
        self, access: S3Access, kind: type[MpxError], stop: Callable[[], bool] | None = None
    ) -> None:
        self.access, self.kind = access, kind
        self.dialogue = WebDialogue(access, stop, follows=False)

    def ask(
        self,
        method: str,
        name: str,
        query: Query | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> tuple[HttpReply, bytes, WebUrl]:
        """Ask about a key; return the answer, its body, and where it was asked. Raises as WebDialogue."""
        given = dict(headers or {})
        if body:
            import hashlib

            given[HASH] = hashlib.sha256(body).hexdigest()
        moves_left = MOST_MOVES
        while True:
            url = self.access.asking(name, query) if query else self.access.url_of(name)
            with self.dialogue.ask(method, url, given, body) as (reply, _):
                content = reply.read(LARGEST_ANSWER_BYTES)
            if not moves_left or not self._may_ask_again(reply, content):
                return reply, content, url
            moves_left -= 1

    def _may_ask_again(self, reply: HttpReply, content: bytes) -> bool:
        is_elsewhere = reply.status in _ELSEWHERE and self.access.moves_to(reply, content)
        return is_elsewhere or self.access.renews(content)

    def answer(
        self, method: str, what: str, name: str, query: Query | None = None, body: bytes = b"", **more: str
    ) -> S3Answer:
        """Ask, and read the answer, which has to be a success: `what` was tried.

        `more`: headers, with _ for -. Raises what a refusal means.
        """
        headers = {key.replace("_", "-"): value for key, value in more.items()}
        reply, content, url = self.ask(method, name, query, headers, body)
        if not is_success(reply):
            raise self.refused(reply, content, url, what)
        return self.read(reply, content, url, what)

    def read(self, reply: HttpReply, content: bytes, url: WebUrl, what: str) -> S3Answer:
        """Read the body of a success, which may be an error all the same; raises what that means."""
        try:
            found = S3Answer(content)
        except S3AnswerError as error:
            why = shown(reply.secrets.hidden_in(str(error)))
            raise ConnectionLost(f"{url}: what the server answers to {what} cannot be read: {why}") from None
        if found.root == "Error":
            raise self.refused(reply, content, url, what)
        return found

    def refused(self, reply: HttpReply, content: bytes, url: WebUrl, what: str) -> MpxError:
        """Return the error for an answer that is no success."""
        return self.access.refused_with(reply, content, url, what, self.kind)

    def heads(self, names: Sequence[str], headers: Mapping[str, str] | None = None) -> list[HttpReply | None]:
        """Ask about several keys at once; None for one that is to be asked about alone."""
        return self.heads_of([self.access.url_of(name) for name in names], headers)

    def heads_of(
        self, urls: Sequence[WebUrl], headers: Mapping[str, str] | None = None
    ) -> list[HttpReply | None]:
        """As `heads`, by URLs."""
        return [answer[0] if answer else None for answer in self.dialogue.ask_all("HEAD", urls, headers)]

    def close(self) -> None:
        """Close all connections."""
        self.dialogue.close()
