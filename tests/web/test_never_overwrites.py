"""What is at a server stays as it is with `--overwrite never`, whatever the server says of folders."""

from pathlib import Path

import pytest
from web.lying import NAME, SMALL, copied, up
from web.scripted_http import Answer, Exchange, Script, ScriptedHttp
from web.servers.rclone import rclone_site

import mpx

OLD, NEW = "old", "a new one"
FILES = ("top", "sub/mid", "sub/deep/low")


def tree(root: Path, content: str) -> Path:
    for name in FILES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return root


def test_rclone_says_that_it_has_made_what_was_there(tmp_path: Path) -> None:
    served = tree(tmp_path / "served", OLD)
    with rclone_site(served) as site:
        outcome = copied(
            f"{tree(tmp_path / 'src', NEW)}/", site.url, recursive=True, overwrite="never", timeout_s=30.0
        )
    assert outcome.code == 0, outcome
    assert {name: (served / name).read_text() for name in FILES} == dict.fromkeys(FILES, OLD)


def test_nothing_is_sent_again_to_rclone(tmp_path: Path) -> None:
    (tmp_path / "served").mkdir()
    source = tree(tmp_path / "src", NEW)
    options = mpx.CopyOptions(recursive=True)
    with rclone_site(tmp_path / "served") as site:
        mpx.copy(f"{source}/", site.url, options)
        report = mpx.copy(f"{source}/", site.url, options)
    assert (report.files.moved, report.files.skipped) == (0, len(FILES))


def hides(exchange: Exchange) -> Answer:
    """Say of each folder whose parent is there that it was made."""
    answer = exchange.usual()
    return Answer(201) if answer.status == 405 else answer


@pytest.mark.parametrize("is_sound", [True, False], ids=["sound", "hiding"])
@pytest.mark.parametrize("to", ["/to/", "/to/new/"])
def test_a_folder_is_asked_for_twice_once(to: str, is_sound: bool, tmp_path: Path) -> None:
    """And then folders are looked for, where the first was new; else files in all those that were "made"."""
    source = tree(tmp_path / "src", NEW)
    with ScriptedHttp({} if is_sound else {"MKCOL": hides}, {"/to/there": b""}) as server:
        assert copied(f"{source}/", f"{server.dav}{to}", recursive=True).code == 0
        assert set(server.files) == {"/to/there", *(to + name for name in FILES)}
        asked = [each.path.rstrip("/") for each in server.asked("MKCOL")]
        described = [each.path.rstrip("/") for each in server.asked("PROPFIND")]
    assert len(asked) == len(set(asked)) + 1
    looked_for = "sub/deep" if to == "/to/new/" else "sub/deep/low"
    after = int(to == "/to/")  # it is described once it is there, as its time is not kept
    assert described.count(to + looked_for) == after + int(not is_sound)


@pytest.mark.parametrize("overwrite", ["never", "different"])
@pytest.mark.parametrize("keeps", [True, False], ids=["once", "again"])
def test_what_comes_meanwhile(keeps: bool, overwrite: str, tmp_path: Path) -> None:
    """Somebody stores a file of that name while ours is under way; it is replaced where that is wanted."""

    def move(exchange: Exchange) -> Answer:
        if keeps or len(exchange.server.asked("MOVE")) == 1:
            exchange.server.files.setdefault(NAME, b"theirs")
        is_in_the_way = exchange.asked.headers["overwrite"] == "F" and NAME in exchange.server.files
        return Answer(412) if is_in_the_way else exchange.usual()

    (tmp_path / "src").write_bytes(SMALL)
    with ScriptedHttp({"MOVE": move}, {"/folder/other": b""}) as server:
        outcome = up(server, tmp_path / "src", overwrite=overwrite)
        assert outcome.code == (4 if overwrite == "never" else 0), outcome
        assert server.files == {
            "/folder/other": b"",
            NAME: b"theirs" if overwrite == "never" else SMALL,
        }
    assert overwrite != "never" or "has come into being meanwhile; --overwrite never" in outcome.text
    if overwrite == "never":
        assert {each.headers["overwrite"] for each in server.asked("MOVE")} == {"F"}


def test_an_answer_that_is_lost_is_not_taken_for_a_file_of_others(tmp_path: Path) -> None:
    def move(exchange: Exchange) -> Answer | None:
        if len(exchange.server.asked("MOVE")) > 1:
            return Answer(412)
        exchange.usual()
        exchange.is_over = True
        return None

    (tmp_path / "src").write_bytes(SMALL)
    with ScriptedHttp({"MOVE": move}, {"/folder/other": b""}) as server:
        assert up(server, tmp_path / "src", overwrite="never").code == 0
        assert server.files[NAME] == SMALL


def heeds(exchange: Exchange) -> Answer:
    """As servers that know the condition: somebody stores a file of that name at the last moment."""
    exchange.server.files.setdefault(NAME, b"theirs")
    exchange.body()
    return Answer(412) if exchange.asked.headers.get("if-none-match") == "*" else exchange.usual()


def is_looked_for(exchange: Exchange) -> Answer:
    """Somebody stores a file of that name before it is looked for at last."""
    exchange.server.files.setdefault(NAME, b"theirs")
    return exchange.usual()


@pytest.mark.parametrize("script", [{"PUT": heeds}, {"HEAD": is_looked_for}], ids=["heeds", "ignores"])
@pytest.mark.parametrize("how", ["upload", "relay"])
def test_what_comes_meanwhile_stays_in_place(how: str, script: Script, tmp_path: Path) -> None:
    (tmp_path / "src").write_bytes(SMALL)
    with (
        ScriptedHttp(script, {"/folder/other": b""}) as server,
        ScriptedHttp({}, {"/src": SMALL}) as source,
    ):
        from_ = tmp_path / "src" if how == "upload" else f"{source.origin}/src"
        outcome = copied(from_, f"{server.dav}{NAME}", overwrite="never", in_place=True, retries=0)
        assert outcome.code == 4, outcome
        assert server.files[NAME] == b"theirs"
    assert "has come into being meanwhile; --overwrite never" in outcome.text


def test_what_an_attempt_of_ours_has_left_in_place_is_replaced(tmp_path: Path) -> None:
    """Half of it is there, under its final name."""

    def stores_half(exchange: Exchange) -> Answer | None:
        content = exchange.body()
        if len(exchange.server.asked("PUT")) > 1:
            return exchange.usual()
        exchange.server.files[NAME] = content[: len(content) // 2]
        exchange.is_over = True
        return None

    (tmp_path / "src").write_bytes(SMALL)
    with ScriptedHttp({"PUT": stores_half}, {"/folder/other": b""}) as server:
        outcome = copied(tmp_path / "src", f"{server.dav}{NAME}", overwrite="never", in_place=True)
        assert outcome.code == 0, outcome
        assert server.files[NAME] == SMALL
        assert [each.headers.get("if-none-match") for each in server.asked("PUT")] == ["*", None]


@pytest.mark.parametrize("how", ["heeds", "ignores"])
def test_what_comes_after_an_attempt_of_ours_that_failed_stays(how: str, tmp_path: Path) -> None:
    """Ours has stored nothing; what is there by then is longer than ours, or comes with the data."""

    def fails_once(exchange: Exchange) -> Answer:
        files = exchange.server.files
        if len(exchange.server.asked("PUT")) == 1:
            exchange.body()
            if how == "ignores":
                files[NAME] = SMALL + b"theirs"
            return Answer(500)
        files.setdefault(NAME, b"theirs")
        exchange.body()
        return Answer(412) if exchange.asked.headers.get("if-none-match") == "*" else exchange.usual()

    (tmp_path / "src").write_bytes(SMALL)
    with ScriptedHttp({"PUT": fails_once}, {"/folder/other": b""}) as server:
        outcome = copied(tmp_path / "src", f"{server.dav}{NAME}", overwrite="never", in_place=True)
        assert outcome.code == 4, outcome
        assert server.files[NAME].endswith(b"theirs")
    assert "has come into being meanwhile; --overwrite never" in outcome.text


@pytest.mark.parametrize("first", [1, 3])
def test_small_files_that_pass_through_here_replace_none_in_place(first: int) -> None:
    """At a server that ignores conditions: somebody stores one of them once it was listed."""
    names = [f"/folder/{number}" for number in range(4)]
    theirs = names[first]

    with ScriptedHttp({}, {"/folder/other": b""}) as server:

        def fetched(exchange: Exchange) -> Answer:
            server.files[theirs] = b"theirs"
            return exchange.usual()

        with ScriptedHttp({"GET": fetched}, dict.fromkeys(names, b"ours")) as source:
            told = mpx.CopyOptions(overwrite="never", in_place=True, streams=1)
            with pytest.raises(mpx.MpxError, match="has come into being meanwhile"):
                mpx.copy([f"{source.origin}{name}" for name in names], f"{server.dav}/folder", told)
        assert server.files == {**dict.fromkeys(names, b"ours"), "/folder/other": b"", theirs: b"theirs"}
