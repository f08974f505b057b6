"""Bearer tokens: where they are found, whose files are taken, when they are read again, what is said."""

import contextlib
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from json_web_tokens import jwt

from mpx.endpoints.web import bearer_tokens
from mpx.endpoints.web.bearer_tokens import BearerToken, BearerTokens
from mpx.endpoints.web.token_file import LARGEST_BYTES, TokenFile
from mpx.engine.endpoint import Admission
from mpx.errors import AuthenticationError, UsageError

HOST, PORT = "dtn.example.org", 1094
NOW_S = 1_790_000_000.0
SECRET = "s3cr3t-of-the-user"
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="gives a file to another user")


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture(autouse=True)
def tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What is /tmp to these tests."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(bearer_tokens, "_TMP", str(tmp_path / "tmp"))
    return tmp_path / "tmp"


def write(path: Path, text: str, mode: int = 0o600) -> str:
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def usual(folder: Path) -> Path:
    return folder / f"bt_u{os.geteuid()}"


def found(tokens: BearerTokens, host: str = HOST, port: int = PORT) -> str | None:
    token = tokens.for_host(host, port)
    return token and token.secret


def test_where_a_token_is_found(tmp: Path, tmp_path: Path) -> None:
    environment: dict[str, str] = {}
    tokens = BearerTokens((), Clock(), environment)
    assert found(tokens) is None
    write(usual(tmp), "of-tmp\n")
    tokens = BearerTokens((), Clock(), environment)
    assert found(tokens) == "of-tmp"
    (tmp_path / "run").mkdir()
    environment["XDG_RUNTIME_DIR"] = str(tmp_path / "run")
    assert found(tokens) == "of-tmp"  # while there is none
    write(usual(tmp_path / "run"), " of-run ")
    assert found(BearerTokens((), Clock(), environment)) == "of-run"
    environment["BEARER_TOKEN_FILE"] = write(tmp_path / "named", "\n\tof-file\r\n")
    assert found(tokens) == "of-file"
    environment["BEARER_TOKEN"] = "of-variable\n"
    assert found(tokens) == "of-variable"
    environment["BEARER_TOKEN"] = " "  # as good as none
    assert found(tokens) == "of-file"


def test_a_file_for_a_host_goes_before_the_environment(tmp_path: Path) -> None:
    one, all_others = write(tmp_path / "one", "of-one"), write(tmp_path / "all", "of-all")
    environment = {"BEARER_TOKEN": "of-variable"}
    tokens = BearerTokens((f"{HOST}={one}",), Clock(), environment)
    assert found(tokens) == "of-one"
    assert found(tokens, "other.example.org") == "of-variable"
    tokens = BearerTokens((all_others, f"{HOST}:{PORT}={one}"), Clock(), environment)
    assert found(tokens) == "of-one"
    assert found(tokens, HOST, 443) == found(tokens, "other.example.org") == "of-all"
    with pytest.raises(UsageError, match="not a host"):
        BearerTokens(("a b=c",))


def test_a_file_in_the_home(private_home: Path) -> None:
    write(private_home / "token", "of-home")
    assert found(BearerTokens((f"{HOST}=~/token",), Clock(), {})) == "of-home"


def refused(token_files: tuple[str, ...] = (), **environment: str) -> str:
    """Return why a token is refused, which is always so and never shows it."""
    tokens = BearerTokens(token_files, Clock(), environment)
    with pytest.raises(AuthenticationError) as first:
        tokens.for_host(HOST, PORT)
    with pytest.raises(AuthenticationError) as second:
        tokens.check(HOST, PORT, NOW_S)
    assert str(first.value) == str(second.value)
    assert SECRET not in repr(first.value) + str(first.getrepr(style="long", showlocals=False))
    return str(first.value)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o602])
def test_a_file_that_others_may_read_or_write(tmp: Path, tmp_path: Path, mode: int) -> None:
    file = write(tmp_path / "token", SECRET, mode)
    whose = f"(owner {os.geteuid()}, mode {mode:04o})"
    said = f"{file} holds a token and is not yours alone {whose}; chmod 600 {file}"
    assert refused((file,)) == refused(BEARER_TOKEN_FILE=file) == said
    write(usual(tmp), SECRET, mode)
    assert "is not yours alone" in refused()


@AS_ROOT
def test_a_file_of_another_user(tmp: Path, tmp_path: Path) -> None:
    file = write(tmp_path / "token", SECRET)
    os.chown(file, 65534, 65534)
    assert "(owner 65534, mode 0600); name a file of your own" in refused((file,))
    write(usual(tmp), SECRET)
    os.chown(usual(tmp), 65534, 65534)
    assert found(BearerTokens((), Clock(), {})) is None


def test_no_link_in_the_open_is_followed(tmp: Path, tmp_path: Path) -> None:
    file = write(tmp_path / "token", SECRET)
    usual(tmp).symlink_to(file)
    assert found(BearerTokens((), Clock(), {})) is None
    assert found(BearerTokens((str(usual(tmp)),), Clock(), {})) == SECRET  # named by hand


@pytest.mark.parametrize("text", [None, "", " \n"])
def test_a_file_that_was_named_and_has_no_token(tmp_path: Path, text: str | None) -> None:
    file = str(tmp_path / "token") if text is None else write(tmp_path / "token", text)
    said = refused((f"{HOST}={file}",))
    assert said.startswith(f"no token in {file} (--token-file): the file is missing or empty")
    assert f"{file} (BEARER_TOKEN_FILE)" in refused(BEARER_TOKEN_FILE=file)


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo", 0o600)
    assert "not a regular file" in refused((str(tmp_path / "fifo"),))
    assert "not a regular file" in refused((str(tmp_path),))
    (tmp_path / "loop").symlink_to("loop")
    assert "cannot read the token in" in refused((str(tmp_path / "loop"),))


NOT_TOKENS = [f"{SECRET} {SECRET}", f"Bearer {SECRET}", f"{SECRET}\n{SECRET}", f"{SECRET}\x00", f"{SECRET}é"]


@pytest.mark.parametrize("text", [*NOT_TOKENS, f"{SECRET}\x1b[2J", f'{{"access_token": "{SECRET}"}}'])
def test_what_is_no_token(tmp_path: Path, text: str) -> None:
    file = write(tmp_path / "token", text)
    assert refused((file,)).startswith(f"what {file} (--token-file) holds is no token: it has a blank")
    said = refused(BEARER_TOKEN=text)
    assert said.startswith("what the variable BEARER_TOKEN holds is no token: it has a blank")


def test_a_token_has_at_most_64_kib(tmp_path: Path) -> None:
    longest = "x" * LARGEST_BYTES
    assert found(BearerTokens((write(tmp_path / "token", longest),), Clock(), {})) == longest
    assert found(BearerTokens((), Clock(), {"BEARER_TOKEN": longest})) == longest
    for text in (f"{longest}x", f" {longest}", f"{SECRET}{longest}"):
        assert "longer than 64 KiB" in refused((write(tmp_path / "token", text),))
    assert "longer than 64 KiB" in refused(BEARER_TOKEN=f"{SECRET}{longest}")


NO_TOKEN = (
    "what the variable BEARER_TOKEN holds is no token: it has a blank, a line end or another character that "
    "no token has; it is to hold the token alone, without a word before it"
)


@given(st.text(min_size=1, max_size=60))
def test_any_text_is_a_token_or_refused(text: str) -> None:
    tokens = BearerTokens((), Clock(), {"BEARER_TOKEN": text})
    try:
        token = tokens.for_host(HOST, PORT)
    except AuthenticationError as error:
        assert str(error) == NO_TOKEN
    else:
        assert token is None or (token.authorization.isascii() and token.authorization.isprintable())
        assert token is None or token.secret == text.strip()


# --- files that change -----------------------------------------------------------------------------------


def renewed(path: Path, text: str) -> None:
    """Write another token in the place of the one that is there, as tools do."""
    write(path.with_name("new"), text)
    path.with_name("new").replace(path)


def rewritten(path: Path, text: str) -> None:
    """Write another token of the same length into the same file, with the time that it had."""
    before = path.stat()
    path.write_text(text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("change", [renewed, rewritten])
def test_a_file_is_read_again_when_it_has_changed(
    tmp_path: Path, change: Callable[[Path, str], None]
) -> None:
    clock, path = Clock(), tmp_path / "token"
    tokens = BearerTokens((write(path, "one"),), clock, {})
    assert found(tokens) == "one"
    change(path, "two")
    clock.now_s = 0.9
    assert found(tokens) == "one"  # looked at once a second
    clock.now_s = 1.0
    assert found(tokens) == "two"


def test_a_file_that_comes_goes_and_is_opened_to_others(tmp: Path) -> None:
    clock, path = Clock(), usual(tmp)
    tokens = BearerTokens((), clock, {})

    def later() -> str | None:
        clock.now_s += 1
        return found(tokens)

    assert later() is None
    write(path, "one")
    assert later() == "one"
    path.chmod(0o644)
    with pytest.raises(AuthenticationError, match="chmod 600"):
        later()
    path.chmod(0o600)
    assert later() == "one"
    path.unlink()
    assert later() is None


def test_an_empty_file_is_being_renewed_for_a_minute(tmp_path: Path) -> None:
    """As a shell empties it before a tool prints the next token into it."""
    clock, path = Clock(), tmp_path / "token"
    tokens = BearerTokens((write(path, "one"),), clock, {})

    def at(now_s: float) -> str | None:
        clock.now_s = now_s
        return found(tokens)

    assert at(0) == "one"
    path.write_text("")
    assert at(5000) == at(5059) == "one"  # from when it was seen to be empty
    path.write_text("two")
    assert at(5061) == "two"
    path.write_text("")
    assert at(6000) == at(6059) == "two"
    for now_s in (6060, 6070, 9000):
        with pytest.raises(AuthenticationError, match="missing or empty"):
            at(now_s)
    path.write_text("three")
    assert at(9001) == "three"
    path.unlink()  # which is no renewal
    with pytest.raises(AuthenticationError, match="missing or empty"):
        at(9002)


def test_no_file_stays_open(tmp_path: Path) -> None:
    clock, folder = Clock(), str(tmp_path)
    good, bad = write(tmp_path / "good", "one"), write(tmp_path / "bad", "one", 0o644)
    before = os.listdir("/proc/self/fd")
    for file in (good, bad, folder):
        with contextlib.suppress(AuthenticationError):
            TokenFile(file, clock).text()
    assert os.listdir("/proc/self/fd") == before


def test_threads_share_it(tmp_path: Path) -> None:
    path, clock = tmp_path / "token", Clock()
    tokens = BearerTokens((write(path, "token-0"),), clock, {})
    seen: list[str | None] = []

    def ask() -> None:
        for _ in range(200):
            clock.now_s += 0.5
            seen.append(found(tokens))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(1, 50):
        renewed(path, f"token-{number}")
    for thread in threads:
        thread.join()
    clock.now_s += 1
    assert len(seen) == 800 and all(each and each.startswith("token-") for each in seen)
    assert found(tokens) == "token-49"


# --- what it says of itself ------------------------------------------------------------------------------


def checked(token: str, now_s: float = NOW_S) -> BearerToken | None:
    return BearerTokens((), Clock(), {"BEARER_TOKEN": token}).check(HOST, PORT, now_s)


def test_a_token_that_is_valid() -> None:
    for token in (
        jwt(exp=NOW_S + 1),
        jwt(nbf=NOW_S + 59),
        jwt(exp=NOW_S + 1, nbf=NOW_S - 1),
        jwt(),
        "opaque",
    ):
        assert checked(token) == BearerToken(token, "the variable BEARER_TOKEN")
    assert BearerTokens((), Clock(), {}).check(HOST, PORT, NOW_S) is None


def test_a_token_that_has_expired(tmp_path: Path) -> None:
    for expires_s in (NOW_S, NOW_S - 1):
        with pytest.raises(AuthenticationError, match="has expired"):
            checked(jwt(exp=expires_s))
    file = write(tmp_path / "token", jwt(exp=NOW_S))
    with pytest.raises(AuthenticationError) as error:
        BearerTokens((file,), Clock(), {}).check(HOST, PORT, NOW_S)
    assert str(error.value) == (
        f"the token for {HOST}, found in {file} (--token-file), has expired (2026-09-21 14:13:20 UTC); get "
        "another one (oidc-token, htgettoken), and run the same command again"
    )


def test_one_that_was_renewed_just_before_it_expired(tmp_path: Path) -> None:
    tokens = BearerTokens((write(tmp_path / "token", jwt(exp=NOW_S)),), Clock(), {})
    assert tokens.check(HOST, PORT, NOW_S - 0.1)
    renewed(tmp_path / "token", jwt(exp=NOW_S + 1))
    token = tokens.check(HOST, PORT, NOW_S)
    assert token and token.claims.expires_s == NOW_S + 1


def test_a_token_that_is_not_valid_yet() -> None:
    with pytest.raises(
        AuthenticationError, match=r"is not valid before 2026-09-21 14:14:21 UTC: check the clock"
    ):
        checked(jwt(nbf=NOW_S + 61))


@pytest.mark.parametrize("seconds", [-1e18, 1e18, -1e308, 1e308, -62135596801, 0])
def test_a_time_that_no_calendar_has(seconds: float) -> None:
    token = jwt(exp=seconds) if seconds < NOW_S else jwt(nbf=seconds)
    with pytest.raises(AuthenticationError, match="BEARER_TOKEN") as error:
        checked(token)
    assert token not in str(error.value)


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_no_time_of_a_token_has_it_shown(expires_s: float, begins_s: float) -> None:
    token = jwt(exp=expires_s, nbf=begins_s)
    try:
        checked(token)
    except AuthenticationError as error:
        assert token not in repr(error) and token.split(".")[1] not in repr(error)


def test_until_when_a_token_lets_in(tmp_path: Path) -> None:
    file = BearerTokens((write(tmp_path / "token", jwt(exp=NOW_S)),), Clock(), {}).admission(HOST, PORT)
    assert file == Admission(
        NOW_S, f"your token for {HOST}", "renew it (oidc-token, htgettoken), its file is read again"
    )
    variable = BearerTokens((), Clock(), {"BEARER_TOKEN": jwt(exp=NOW_S)}).admission(HOST, PORT)
    assert variable and variable.renewal == (
        "the variable BEARER_TOKEN cannot be renewed meanwhile, as a file can (--token-file, "
        "BEARER_TOKEN_FILE)"
    )
    for environment in ({}, {"BEARER_TOKEN": "opaque"}):
        assert BearerTokens((), Clock(), environment).admission(HOST, PORT) is None


def test_a_token_is_not_shown() -> None:
    token = BearerTokens((), Clock(), {"BEARER_TOKEN": SECRET}).for_host(HOST, PORT)
    assert token and token.authorization == f"Bearer {SECRET}"
    for text in (repr(token), str(token), f"{token}", f"{[token]}", f"{token!s:>9}", ascii(token)):
        assert SECRET not in text and "BEARER_TOKEN" in text


def test_nothing_shows_a_token_that_was_read(tmp_path: Path) -> None:
    tokens = BearerTokens((write(tmp_path / "token", SECRET),), Clock(), {})
    assert found(tokens) == SECRET
    assert SECRET not in repr(tokens) and SECRET not in repr(TokenFile(str(tmp_path / "token"), Clock()))


def test_what_to_do_without_one(tmp: Path) -> None:
    said = BearerTokens((), Clock(), {"XDG_RUNTIME_DIR": "/run/user/7"}).how_to_give_one(HOST)
    assert said.startswith(
        f"get a token for {HOST} (oidc-token, htgettoken) and name its file with --token-file"
    )
    assert said.endswith(f"BEARER_TOKEN, BEARER_TOKEN_FILE, {usual(Path('/run/user/7'))}, {usual(tmp)}")
    relative = BearerTokens((), Clock(), {"XDG_RUNTIME_DIR": "run"})
    assert relative.how_to_give_one(HOST).endswith(f"BEARER_TOKEN_FILE, {usual(tmp)}")
