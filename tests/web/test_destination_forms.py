"""How a MOVE names where files go, at a server behind a proxy, beside files that it refuses for good."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from web.lying import NAME, SMALL, copied, up
from web.scripted_http import PATIENCE_S, Answer, Asked, Exchange, ScriptedHttp

from mpx.endpoints.web.access import WebAccess
from mpx.endpoints.web.destination_forms import DestinationForm, DestinationForms
from mpx.endpoints.web.endpoint import WebEndpoint
from mpx.endpoints.web.options import WebOptions
from mpx.engine.endpoint import Commit
from mpx.location import parse_location

TAKEN = "https://"  # by a server that thinks that all comes through TLS
URL, PATH, OTHER_SCHEME = DestinationForm


def is_taken(asked: Asked) -> bool:
    return asked.headers["destination"].startswith(TAKEN)


def taking(exchange: Exchange) -> Answer:
    """Rename where the form is right; never to some names; replace nothing unless that is asked for."""
    asked = exchange.asked
    final = unquote(urlsplit(asked.headers["destination"]).path)
    if not is_taken(asked) or final.endswith("-bad"):
        return Answer(400)
    if asked.headers["overwrite"] == "F" and final in exchange.server.files:
        return Answer(412)
    return exchange.usual()


def tree(folder: Path, count: int) -> None:
    """Make files, some of them with names that are refused, which come first in some batches."""
    folder.mkdir()
    for n in range(count):
        (folder / f"{n:04}{'' if n % 40 else '-bad'}").write_bytes(b"new")


@pytest.mark.parametrize("older", [b"older", None], ids=["replaced", "new"])
@pytest.mark.parametrize("sessions", [1, 4])
def test_files_that_are_refused_for_good_keep_no_others(
    sessions: int, older: bytes | None, tmp_path: Path
) -> None:
    tree(tmp_path / "tree", 200)
    names = [f"/to/{path.name}" for path in (tmp_path / "tree").iterdir()]
    good = {name for name in names if not name.endswith("-bad")}
    there = {"/to/other": b""} if older is None else dict.fromkeys(names, older)
    with ScriptedHttp({"MOVE": taking}, there) as server:
        outcome = copied(
            tmp_path / "tree",
            f"{server.dav}/to",
            recursive=True,
            streams=4,
            max_sessions=sessions,
            retries=0,
        )
        assert outcome.code == 10, outcome
        assert {name for name in names if server.files.get(name) == b"new"} == good
        moves = server.asked("MOVE")
    if sessions == 1:  # what is known is not looked for anew
        first = next(i for i, asked in enumerate(moves) if is_taken(asked))
        assert all(map(is_taken, moves[first:]))


def test_sessions_that_begin_at_once() -> None:
    """Each begins in the wrong form; one of them has nothing but what is refused."""
    batches = [
        [f"/to/{session}-{n}{'' if n else '-bad'}" for n in range(50 if session else 1)]
        for session in range(4)
    ]
    names = [name for batch in batches for name in batch]
    all_ask, begun = threading.Barrier(len(batches)), set[int]()

    def together(exchange: Exchange) -> Answer:
        if exchange.asked.connection not in begun:
            begun.add(exchange.asked.connection)
            all_ask.wait(PATIENCE_S)
        return taking(exchange)

    files = {f"{name}.part": b"new" for name in names} | dict.fromkeys(names, b"older")
    with ScriptedHttp({"MOVE": together}, files) as server:
        location = parse_location(f"{server.dav}/to/")
        access = WebAccess(location, WebOptions(timeout_s=PATIENCE_S))

        def commit(batch: Sequence[str]) -> Sequence[Exception | None]:
            end = WebEndpoint(location, access, writing=True)
            try:
                return end.commit(
                    [Commit(f"{name}.part", name, None, None) for name in batch], lambda _: None
                )
            finally:
                end.close()

        with ThreadPoolExecutor(len(batches)) as threads:
            errors = [error for of_batch in threads.map(commit, batches) for error in of_batch]
        refused = {name for name, error in zip(names, errors, strict=True) if error is not None}
        assert refused == {name for name in names if name.endswith("-bad")}
        assert {name for name in names if server.files[name] == b"older"} == refused


def test_one_that_is_led_elsewhere(tmp_path: Path) -> None:
    """It is asked for alone, in each form too."""

    def leads(exchange: Exchange) -> Answer:
        if "?" in exchange.asked.target:
            return taking(exchange)
        return Answer(307, {"Location": f"{exchange.server.origin}{exchange.asked.target}?here"})

    (tmp_path / "src").write_bytes(SMALL)
    with ScriptedHttp({"MOVE": leads}, {"/folder/other": b""}) as server:
        outcome = up(server, tmp_path / "src", retries=0)
        assert outcome.code == 0, outcome
        assert server.files[NAME] == SMALL


def test_forms_in_turn() -> None:
    forms = DestinationForms()
    assert list(forms.in_turn()) == [URL, PATH, OTHER_SCHEME]
    assert (forms.first(), forms.is_known) == (URL, False)  # none was taken, so nothing is known
    of_others, of_who_has_tried_it = forms.in_turn(), forms.in_turn()
    assert next(of_others) is URL
    assert [next(of_who_has_tried_it) for _ in DestinationForm] == [URL, PATH, OTHER_SCHEME]
    forms.taken(OTHER_SCHEME)
    assert list(of_others) == [OTHER_SCHEME]
    assert list(of_who_has_tried_it) == []
    forms.taken(PATH)
    assert list(forms.in_turn()) == [OTHER_SCHEME]
