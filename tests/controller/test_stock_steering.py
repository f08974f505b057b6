"""Path sets of a session: got once, kept while there are streams, got anew where a controller forgets."""

from contextlib import suppress

import pretended
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpx_controller.stock.netmgr.mpx_netmgr.client import Client, Unsteered
from mpx_controller.stock.netmgr.mpx_netmgr.pair import Pair
from mpx_controller.stock.netmgr.mpx_netmgr.steering import SOONEST_S, Steering
from pretended import LEASE_S, PATHS, Book, saying

PAIR, OTHER = Pair("10.0.0.1", "10.0.0.2"), Pair("10.0.0.3", "10.0.0.2")


class Direct(Client):
    """Asks a book without a network between."""

    def __init__(self, book: Book) -> None:
        super().__init__("http://nowhere")
        object.__setattr__(self, "book", book)

    def _ask(self, method: str, what: str, body: object = None) -> object:
        book: Book = vars(self)["book"]
        status, told = book.asked(method, f"/path-sets{what}", body)
        if status >= 400:
            raise Unsteered(told["detail"], status)
        return told


class Late(Direct):
    """Its controller does what it is asked, and answers too late."""

    def place(self, number: int, ports: list[int], path: int | None = None) -> list[int]:
        super().place(number, ports, path)
        raise Unsteered("no answer")


def test_a_stream_that_was_placed_too_late_is_taken_off_at_its_end() -> None:
    book = Book()
    steering = Steering(Late(book), 0)
    with pytest.raises(Unsteered):
        steering.place(PAIR, 1, 0.0)
    assert book.sets == {1: {1: 0}}
    steering.remove(PAIR, 1)
    assert book.sets == {1: {}}


def test_a_lease_of_next_to_nothing_is_not_renewed_without_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pretended, "LEASE_S", 1e-9)
    steering = Steering(Direct(Book()), 0)
    steering.place(PAIR, 1, 0.0)
    assert steering.next_s() == SOONEST_S


def test_one_path_set_for_all_streams_of_a_pair() -> None:
    book = Book()
    steering = Steering(Direct(book), 0)
    assert [steering.place(PAIR, port, 0.0) for port in (1, 2, 3, 4)] == [0, 1, 2, 3]
    assert steering.place(Pair("10.0.0.2", "10.0.0.1", "T7"), 1, 0.0) == 0
    assert book.sets == {1: {1: 0, 2: 1, 3: 2, 4: 3}, 2: {1: 0}}
    steering.remove(PAIR, 2)
    assert book.sets[1] == {1: 0, 3: 2, 4: 3}
    steering.release()
    assert book.sets == {}


def test_in_turn() -> None:
    book = Book()
    steering = Steering(Direct(book), 0, in_turn=True)
    assert [steering.place(PAIR, port, 0.0) for port in range(1, 7)] == [0, 1, 2, 3, 0, 1]


def test_a_lease_is_kept_while_there_are_streams() -> None:
    book = Book()
    steering = Steering(Direct(book), 0)
    steering.place(PAIR, 1, 0.0)
    assert steering.next_s() == LEASE_S / 3
    steering.keep(LEASE_S / 3 - 1)
    assert book.renewed == 0
    steering.keep(LEASE_S / 3)
    assert book.renewed == 1 and steering.next_s() == 2 * LEASE_S / 3
    steering.remove(PAIR, 1)
    assert steering.next_s() == float("inf")


@pytest.mark.parametrize("lost", [PAIR.source, OTHER.source])
def test_a_pair_without_a_path_set_is_asked_for_when_it_would_be_renewed(lost: str) -> None:
    """Others of the session are renewed all the same, and nobody is asked without a pause."""
    book = Book()
    steering = Steering(Direct(book), 0)
    for pair in (PAIR, OTHER):
        steering.place(pair, 1, 0.0)
    del book.sets[1 if lost == PAIR.source else 2]
    book.unknown.add(lost)
    for turn in (1, 2):
        now_s = steering.next_s()
        assert now_s == turn * LEASE_S / 3
        with pytest.raises(Unsteered):
            steering.keep(now_s)
        assert book.renewed == turn
    book.unknown.clear()
    steering.keep(steering.next_s())
    assert list(book.sets.values()) == [{1: 0}, {1: 0}] and book.renewed == 3


def test_who_has_a_stream_keeps_it() -> None:
    book = Book()
    book.taken.add(7)
    steering = Steering(Direct(book), 0)
    assert steering.place(PAIR, 7, 0.0) is None
    steering.remove(PAIR, 7)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("place"), st.integers(1, 5)),
            st.tuples(st.just("remove"), st.integers(1, 5)),
            st.just(("forget", 0)),
            st.tuples(st.just("be busy"), st.integers(1, 3)),
            st.just(("keep", 0)),
        ),
        max_size=20,
    )
)
def test_what_a_controller_forgets_is_told_again(steps: list[tuple[str, int]]) -> None:
    book, there, now_s = Book(), set(), 0.0
    steering = Steering(Direct(book), 0)
    for what, port in steps:
        now_s += LEASE_S
        if what == "place" and port not in there:
            with suppress(Unsteered):
                steering.place(PAIR, port, now_s)
                there.add(port)
        elif what == "remove" and (book.sets or port not in there):
            steering.remove(PAIR, port)
            there.discard(port)
        elif what == "forget":
            book.sets.clear()
        elif what == "be busy":
            book.busy = port
        elif what == "keep":
            with suppress(Unsteered):
                steering.keep(now_s)
    book.busy = 0
    steering.keep(now_s + LEASE_S)
    assert {port for ports in book.sets.values() for port in ports} == there


def test_over_http(book: tuple[Book, str]) -> None:
    client = Client(book[1])
    made = client.assign("10.0.0.1", "10.0.0.2", 0)
    assert (made.number, made.paths, made.lease_s) == (1, PATHS, LEASE_S)
    assert client.place(1, [40, 41]) == [0, 1] and client.place(1, [42], 3) == [3]
    client.remove(1, [40])
    client.renew(1)
    assert book[0].sets == {1: {41: 1, 42: 3}} and book[0].renewed == 1
    client.release(1)
    with pytest.raises(Unsteered, match=r"refuses \(404\): there is no path set 1") as refused:
        client.renew(1)
    assert refused.value.status == 404


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n[1, 2]",
        b'HTTP/1.1 200 OK\r\n\r\n{"id": 1, "paths": [{}], "streams": 1, "lease_s": NaN}',
        b'HTTP/1.1 200 OK\r\n\r\n{"id": 1, "paths": [], "streams": 1, "lease_s": 60}',
        b'HTTP/1.1 200 OK\r\n\r\n{"id": 1e999, "paths": [{}], "streams": 1, "lease_s": 60}',
        b"HTTP/1.1 500 Oh\r\n\r\nnot json",
        b'HTTP/1.1 403 No\r\n\r\n"no\\u001b[31m"',
        b"HTTP/1.1 200 OK\r\n\r\n" + b" " * (2 << 20),
        b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 100_000,
        b"SSH-2.0-OpenSSH\r\n",
        None,
    ],
)
def test_what_cannot_be_is_refused(answer: bytes | None) -> None:
    with saying(answer) as url, pytest.raises(Unsteered) as refused:
        Client(url, timeout_s=0.3).assign("10.0.0.1", "10.0.0.2", 0)
    assert str(refused.value).isprintable()


@pytest.mark.parametrize(
    "url", ["", "nowhere", "ftp://127.0.0.1", "http://", "http://127.0.0.1:x", "http://[::1"]
)
def test_no_url(url: str) -> None:
    with pytest.raises(Unsteered, match="does not answer"):
        Client(url).renew(1)


def test_a_token_is_not_sent_in_the_clear() -> None:
    with pytest.raises(Unsteered, match="by https:// only"):
        Client("http://192.0.2.1:6680", "sixteen-characters").renew(1)
