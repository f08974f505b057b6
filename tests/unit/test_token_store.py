"""The tokens of a server: made, found, revoked, expired, and never kept themselves."""

import os
from collections.abc import Iterator

import pytest

from mpx.errors import UsageError
from mpx.files.state_folder import StateFolder
from mpx.serve.rights import TokenRights
from mpx.serve.token_store import TokenStore, new_token

KEY = "k" * 43


@pytest.fixture
def state() -> Iterator[StateFolder]:
    with StateFolder() as state:
        yield state


def added(store: TokenStore, until_s: float | None = None, folder: str = "/") -> tuple[str, TokenRights]:
    token, grant = new_token(KEY, folder=folder, writable=True, until_s=until_s, note="for a test")
    store.add(grant)
    return token.secret, grant


def test_a_token_is_found_by_its_secret(state: StateFolder) -> None:
    store, other = TokenStore(state), TokenStore(state)
    assert store.find("s" * 43) is None
    secret, grant = added(other)
    assert store.find(secret) == grant
    assert store.find(secret[:-1]) is None
    assert store.still_holds(grant)
    again, _ = added(other)
    assert again != secret
    assert store.find(secret) == grant


def test_its_secret_is_kept_nowhere(state: StateFolder) -> None:
    secret, grant = added(TokenStore(state))
    for path in state.path.iterdir():
        assert secret not in path.read_text()
        assert path.stat().st_mode & 0o077 == 0
    assert secret not in repr(grant)


def test_revoked_and_expired_ones_hold_no_more(state: StateFolder) -> None:
    store = TokenStore(state)
    secret, grant = added(store)
    assert TokenStore(state).revoke(grant.id)
    assert store.find(secret) is None
    assert not store.still_holds(grant)
    assert not store.revoke(grant.id)
    late, expired = added(store, until_s=1.0)
    assert store.find(late) is None
    assert not store.still_holds(expired)
    assert [each.id for each in store.grants()] == [expired.id]


@pytest.mark.parametrize("folder", ["..", "a/../../b", "/../x", "~", ""])
def test_folders_are_within_the_tree(folder: str) -> None:
    _, grant = new_token(KEY, folder=folder, writable=False, until_s=None, note="")
    assert grant.folder.startswith("/")
    assert ".." not in grant.folder.split("/")


def test_a_damaged_file_is_said(state: StateFolder) -> None:
    store = TokenStore(state)
    secret, _ = added(store)
    path = state.path / "serve-tokens.json"
    for damage in ("{", "[1]", '[{"id": 1}]', "null"):
        path.write_text(damage)
        with pytest.raises(UsageError, match="it is not a list of tokens"):
            TokenStore(state).find(secret)
    path.unlink()
    os.symlink("/etc/passwd", path)
    with pytest.raises(UsageError, match="cannot use the tokens"):
        TokenStore(state).find(secret)
