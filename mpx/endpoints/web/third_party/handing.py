"""Choosing what lets one server in at another one: a macaroon for one file, else the user's token.

A macaroon is a token that the other server makes when it is asked: it permits one activity on one path for an
hour. Some servers make macaroons that permit nothing, which only their use shows. A password is handed to
nobody.
"""

import json
import threading
from weakref import WeakSet

from mpx.endpoints.web.bearer_tokens import is_sendable
from mpx.endpoints.web.dialogue import WebDialogue
from mpx.endpoints.web.refusals import BUSY, is_success
from mpx.endpoints.web.reply import HttpReply
from mpx.endpoints.web.third_party.handed import Handed, Means
from mpx.endpoints.web.third_party.way import CopyWay
from mpx.endpoints.web.token_file import LARGEST_BYTES
from mpx.endpoints.web.url import WebUrl
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.retry import ServerBusy
from mpx.errors import ConnectionLost, ThirdPartyRefused, TransferTimeout
from mpx.report import OnNote

LASTS = "PT1H"  # an hour (ISO 8601)
_ASKED_AS = {"Content-Type": "application/macaroon-request", "Accept": "application/json"}
_LONGEST_ANSWER = 2 * LARGEST_BYTES
_MOST_PUT_OFF = 3  # files, before it is the way of copying that is refused
_TRIES = 2  # before a server that answers nothing is asked something else
_OF_PROXIES = (502, 504)  # which had no answer
_TOLD = {
    Means.MACAROON: "with a macaroon for that file, for an hour",
    Means.TOKEN: "with your token for {}",
    Means.NOTHING: "without credentials of yours",
}


class Handing:
    """What is known of one way of copying. For any thread."""

    def __init__(self, way: CopyWay, note: OnNote) -> None:
        self._way, self._note = way, note
        self._lock = threading.Lock()  # guards the next three
        self._makes_macaroons = True  # of use, as far as is known
        self._macaroon_was_used = False  # one has let the active server in
        self._put_off: WeakSet[FileTransfer] = WeakSet()  # that were refused before any other was copied

    def choose(self, file: FileTransfer, dialogue: WebDialogue) -> Handed:
        """Return what to hand over for a file; asks the passive server by `dialogue`.

        Raises ThirdPartyRefused where that would be a password, AuthenticationError for a token that does not
        hold, ConnectionLost and the like.
        """
        passive = self._way.passive
        if self._makes_macaroons and not passive.server.is_plain:
            if macaroon := self._macaroon(file, dialogue):
                return Handed(Means.MACAROON, macaroon)
            self._without_macaroons()
        return self._without_macaroon()

    def instead_of(self, refused: Handed) -> Handed | None:
        """Return the user's token in place of a macaroon that lets nobody in; None: there is none."""
        if refused.means is not Means.MACAROON:
            return None
        self._without_macaroons()
        other = self._without_macaroon()
        return other if other.means is Means.TOKEN else None

    def proved(self, handed: Handed) -> None:
        """Take note of what has let the active server in."""
        if handed.means is Means.MACAROON:
            with self._lock:
                self._macaroon_was_used = True
            self._told(handed)

    def may_put_off(self, file: FileTransfer) -> bool:
        """Tell whether others are to be tried before a refusal counts: few files, once each."""
        with self._lock:
            if file in self._put_off or len(self._put_off) >= _MOST_PUT_OFF:
                return False
            self._put_off.add(file)
            return True

    def _without_macaroons(self) -> None:
        """Ask for no macaroon any more, unless one was of use: then it is this file's that is not."""
        with self._lock:
            self._makes_macaroons = self._macaroon_was_used

    def _without_macaroon(self) -> Handed:
        passive = self._way.passive
        if passive.uses_password:
            raise ThirdPartyRefused(
                f"a password lets us in at {passive.origin.authority}, which is handed to no other server"
            )
        token = passive.token
        handed = Handed(Means.TOKEN, token.secret) if token else Handed(Means.NOTHING)
        self._told(handed)
        return handed

    def _told(self, handed: Handed) -> None:
        """Have the report say what is handed over: of macaroons those that are of use."""
        with_what = _TOLD[handed.means].format(self._way.passive.origin.authority)
        self._note(f"{self._way.does} {with_what}")

    def _macaroon(self, file: FileTransfer, dialogue: WebDialogue) -> str:
        """Ask for one; empty where the server makes none, as some that break off or say nothing then.

        Raises ConnectionLost, TransferTimeout where it answers nothing else either: the token is not handed
        over for a failure of the network; ServerBusy where it takes no requests for now.
        """
        url, name = self._way.other(file), file.source if self._way.is_pull else file.partial
        caveats = [f"activity:{self._way.activities}", f"path:{name}"]
        body = json.dumps({"caveats": caveats, "validity": LASTS}).encode()
        why = ""
        for _ in range(_TRIES):
            dialogue.connection(url.origin)  # that it cannot be opened is another thing
            try:
                with dialogue.ask("POST", url, _ASKED_AS, body) as (reply, there):
                    _check_answered(dialogue, reply, there, "make a macaroon for")
                    return _macaroon_in(reply.read(_LONGEST_ANSWER)) if is_success(reply) else ""
            except ServerBusy:
                raise
            except (ConnectionLost, TransferTimeout) as error:
                with self._lock:
                    makes_some = self._macaroon_was_used
                if makes_some:
                    raise
                why = str(error)
        dialogue.drop(url.origin)
        with dialogue.ask("HEAD", url) as (reply, there):
            _check_answered(dialogue, reply, there, "describe")
        self._note(f"asked for a macaroon, {url.origin} does not answer: {why}")
        return ""


def _check_answered(dialogue: WebDialogue, reply: HttpReply, url: WebUrl, what: str) -> None:
    """Raise what an answer means that says nothing of what was asked for: of a busy server, or of a proxy."""
    if reply.status in (*BUSY, *_OF_PROXIES):
        raise dialogue.refused(reply, url, what)


def _macaroon_in(answer: bytes) -> str:
    """Return the macaroon that an answer holds; empty where there is none that a header can carry."""
    try:
        found = json.loads(answer)
    except (ValueError, RecursionError):
        return ""
    macaroon = found.get("macaroon") if isinstance(found, dict) else None
    return macaroon if isinstance(macaroon, str) and is_sendable(macaroon) else ""
