"""How often the sessions of this process wait for a server: counted, and so the same on every machine."""

from collections.abc import Sequence

import pytest

from mpx.endpoints.ftp.session import ClientSession
from mpx.endpoints.ftp.wire import Reply


class Rounds:
    """What each session says, and when it waits for the answers before it says more."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sessions: list[ClientSession] = []
        self.early: list[ClientSession] = []  # those that spoke before they had read the greeting
        self._said: dict[ClientSession, list[list[list[str]]]] = {}
        self._has_heard: dict[ClientSession, bool] = {}
        send, poll_reply = ClientSession.send, ClientSession.poll_reply

        def sends(session: ClientSession, *commands: bytes) -> None:
            if session not in self._said:
                self._said[session] = []
                self._has_heard[session] = True
                self.sessions.append(session)
                if not session.is_greeted:
                    self.early.append(session)
            if self._has_heard[session]:
                self._said[session].append([])
            self._has_heard[session] = False
            self._said[session][-1].append([line.decode().split()[0] for line in commands])
            send(session, *commands)

        def hears(session: ClientSession, wait_s: float) -> Reply | None:
            reply = poll_reply(session, wait_s)
            self._has_heard[session] = self._has_heard.get(session, False) or reply is not None
            return reply

        monkeypatch.setattr(ClientSession, "send", sends)
        monkeypatch.setattr(ClientSession, "poll_reply", hears)

    def of(self, session: ClientSession) -> Sequence[list[list[str]]]:
        """Return what a session said: for each round the writes, for each of these the verbs."""
        return self._said[session]

    def until(self, verb: str) -> tuple[int, list[list[list[str]]]]:
        """Return the session that said this first, by its number, and its rounds up to that one."""
        for number, session in enumerate(self.sessions):
            for count, writes in enumerate(self._said[session], 1):
                if any(verb in write for write in writes):
                    return number, self._said[session][:count]
        raise AssertionError(f"nobody said {verb}: {list(self._said.values())}")


@pytest.fixture
def rounds(monkeypatch: pytest.MonkeyPatch) -> Rounds:
    """Count from now on."""
    return Rounds(monkeypatch)
