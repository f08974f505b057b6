"""DelayProxy: its thread, its listeners, and the faults it can inject."""

import random
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Self, TypeVar

from mpx_lab.proxy.path import SOCKET_BUFFER_BYTES, Path, PathOptions
from mpx_lab.proxy.record import Direction, Record, Side
from mpx_lab.proxy.relay import Relay
from mpx_lab.proxy.rewrite import Address, LineRewriter
from mpx_lab.proxy.session import Listener, Session

Answer = TypeVar("Answer")


def _resolve(host: str) -> str:
    """Return the numeric address, since connecting in the loop must not wait for a resolver."""
    return str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])


class DelayProxy:
    """A long path in front of an FTP server, on loopback: delay, rate, faults, and a record of it all.

    Control and data connections alike meet `rtt_s` (half of it each way), `rate_bps` in each
    direction, and `window_bytes` at most on their way. `total_rate_bps` is a bottleneck that the data
    connections of all sessions share, one in each direction. Addresses in the FTP dialogue are
    rewritten, so that data connections come through here too, whichever side opens them; one
    announced address takes any number of connections, for as long as its session lives.

    Delay and window are described in path.py and pipe.py, handshake, half-close and reset in
    relay.py. All methods may be called from any thread.
    """

    def __init__(
        self,
        target: Address,
        *,
        rtt_s: float = 0.030,
        rate_bps: float | None = None,
        total_rate_bps: float | None = None,
        window_bytes: int | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self.host = host
        self._target: Address = (_resolve(target[0]), target[1])
        self._path = Path(PathOptions(rtt_s, rate_bps, window_bytes), total_rate_bps)
        self._loop = self._path.loop
        self._sessions: set[Session] = set()
        self._stalled: set[Relay] = set()
        self._lost = False
        self._refusing = False
        self._stopping = False
        self._running = False
        self._failure: BaseException | None = None
        self._ask_lock = threading.Lock()
        self._front = Listener(self._loop, (host, port), self._open_control, SOCKET_BUFFER_BYTES)
        self.port: int = self._front.address[1]
        self._front.listen()
        self._thread = threading.Thread(target=self._run, name="mpx-delay-proxy", daemon=True)

    def start(self) -> Self:
        """Begin to serve; the port is bound before."""
        self._running = True
        self._thread.start()
        return self

    def stop(self) -> None:
        """Reset all connections and end the thread; raises RuntimeError where it had failed before."""
        self._ask(self._stop)
        self._thread.join()
        if self._failure is not None:
            raise RuntimeError("the delay proxy has failed") from self._failure

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def record(self) -> Record:
        """Return a copy of the record so far; also after the end."""
        return self._ask(self._path.record.copy)

    def open_data_connections(self) -> list[int]:
        """Return the numbers of the data connections that are open, oldest first."""
        return self._ask(lambda: sorted(relay.log.number for relay in self._data_relays()))

    def reset_data_connection(self, number: int | None = None, rng: random.Random | None = None) -> int:
        """Reset one data connection on both sides, chosen by `rng` if not given; returns its number."""
        return self._ask(lambda: self._with_data_relay(number, rng, Relay.reset))

    def stall_data_connection(self, number: int | None = None, rng: random.Random | None = None) -> int:
        """Let nothing pass on one data connection until it is resumed; returns its number."""
        return self._ask(lambda: self._with_data_relay(number, rng, self._stall))

    def resume_data_connection(self, number: int) -> None:
        """Let a stalled data connection go on."""
        self._ask(lambda: self._with_data_relay(number, None, self._unstall))

    def drop_everything(self) -> None:
        """Lose the network: all connections freeze and new ones are never served, without any error."""
        self._ask(lambda: self._set_faults(lost=True))

    def restore(self) -> None:
        """Restore the network, with everything that was in flight."""
        self._ask(lambda: self._set_faults(lost=False))

    def refuse_new(self, refusing: bool) -> None:
        """Refuse new control and data connections (ECONNREFUSED), or accept them again."""
        self._ask(lambda: self._set_faults(refusing=refusing))

    def _ask(self, question: Callable[[], Answer]) -> Answer:
        """Return the answer of the proxy's thread; once that has ended, of the calling thread."""
        answer: Future[Answer] = Future()

        def give_answer() -> None:
            try:
                answer.set_result(question())
            except Exception as error:
                answer.set_exception(error)

        with self._ask_lock:
            running = self._running
            if running:
                self._loop.call_soon(give_answer)
        if not running:
            self._thread.join()
            give_answer()
        return answer.result()

    # All methods below run in the proxy's thread.

    def _run(self) -> None:
        try:
            self._loop.run(until=lambda: self._stopping)
        except BaseException as failure:  # threading prints it, and `stop` raises it
            self._failure = failure
            raise
        finally:
            with self._ask_lock:
                self._running = False
            self._loop.run_calls()
            self._front.close()
            for relay in self._relays():
                relay.reset()
            self._loop.end()

    def _stop(self) -> None:
        self._stopping = True

    def _relays(self) -> list[Relay]:
        controls = [session.control for session in self._sessions]
        return [relay for relay in controls if relay is not None and relay.is_open] + self._data_relays()

    def _data_relays(self) -> list[Relay]:
        return [relay for session in self._sessions for relay in session.data]

    def _listeners(self) -> list[Listener]:
        return [self._front, *(each for session in self._sessions for each in session.listeners.values())]

    def _with_data_relay(
        self, number: int | None, rng: random.Random | None, act: Callable[[Relay], None]
    ) -> int:
        relays = sorted(self._data_relays(), key=lambda relay: relay.log.number)
        if number is None and relays:
            relays = [(rng or random.Random()).choice(relays)]
        elif number is not None:
            relays = [relay for relay in relays if relay.log.number == number]
        if not relays:
            which = "no data connection" if number is None else f"no data connection number {number}"
            raise LookupError(f"{which} is open")
        act(relays[0])
        return relays[0].log.number

    def _stall(self, relay: Relay) -> None:
        self._stalled.add(relay)
        relay.pause()

    def _unstall(self, relay: Relay) -> None:
        self._stalled.discard(relay)
        if not self._lost:
            relay.resume()

    def _set_faults(self, *, lost: bool | None = None, refusing: bool | None = None) -> None:
        self._lost = self._lost if lost is None else lost
        self._refusing = self._refusing if refusing is None else refusing
        for listener in self._listeners():
            self._apply_faults(listener)
        if lost is None:
            return
        for relay in self._relays():
            if lost:
                relay.pause()
            elif relay not in self._stalled:
                relay.resume()

    def _apply_faults(self, listener: Listener) -> None:
        if self._lost:
            listener.ignore()
        elif self._refusing:
            listener.refuse()
        else:
            listener.listen()

    def _open_control(self, accepted: socket.socket, client: Address) -> None:
        session = Session(self.host, {"client": client[0], "server": self._target[0]})
        rewriters: dict[Direction, LineRewriter] = {
            "up": LineRewriter(partial(self._announced, session, "client"), from_server=False),
            "down": LineRewriter(partial(self._announced, session, "server"), from_server=True),
        }
        log = self._path.opened("control", "client")
        on_closed = partial(self._closed, session)
        session.control = Relay(self._path, log, accepted, self._target, rewriters, on_closed)
        self._sessions.add(session)
        session.control.resume()

    def _announced(self, session: Session, announced_by: Side, host: str, port: int) -> Address:
        """Open the listener that leads to the address which one side has just announced."""
        leads_to = session.destination(announced_by, host, port)
        listener = session.listeners.get(leads_to)
        if listener is None:
            opened_by: Side = "client" if announced_by == "server" else "server"
            address = (session.listening_host(host), 0)
            on_accept = partial(self._open_data, session, opened_by, leads_to)
            listener = Listener(self._loop, address, on_accept, self._path.options.receive_buffer_bytes)
            self._apply_faults(listener)
        session.keep(leads_to, listener)
        return listener.address

    def _open_data(
        self, session: Session, opened_by: Side, leads_to: Address, accepted: socket.socket, _peer: Address
    ) -> None:
        log = self._path.opened("data", opened_by)
        relay = Relay(self._path, log, accepted, leads_to, {}, partial(self._closed, session))
        session.data.add(relay)
        relay.resume()

    def _closed(self, session: Session, relay: Relay) -> None:
        self._stalled.discard(relay)
        session.data.discard(relay)
        if session.close_listeners_if_over():
            self._sessions.discard(session)
