"""What ssh tells of its login: whether another one would ask the user for something."""

import os
import subprocess
from pathlib import Path

import pytest

from mpx.endpoints.ssh.login_record import has_logged_in, needs_somebody

METHODS = {
    'Authenticated to h ([192.0.2.1]:22) using "password".': True,
    'Authenticated to h (via proxy) using "keyboard-interactive".': True,
    "debug1: Authentication succeeded (keyboard-interactive).": True,
    'Authenticated to h ([192.0.2.1]:22) using "gssapi-with-mic".': False,
    "debug1: Authentication succeeded (hostbased).": False,
    'Authenticated using "password" with partial success.\nAuthenticated to h using "hostbased".': True,
    'Authenticated to h ([192.0.2.1]:22) using "publickey".': None,  # by which key is not told
}


@pytest.mark.parametrize("told", METHODS)
def test_by_its_method(told: str) -> None:
    assert (
        needs_somebody(f"debug1: kex: of something\n{told}\ndebug1: Entering interactive session.\n")
        is METHODS[told]
    )
    assert has_logged_in(told)


def test_one_that_has_joined_a_connection_tells_nothing() -> None:
    for told in ("", "debug1: mux_client_request_session: master session id: 2\n", 'using "publickey"\n'):
        assert needs_somebody(told) is None
        assert not has_logged_in(told)
    assert not has_logged_in('Authenticated using "password" with partial success.\n')


@pytest.mark.parametrize("form", [(), ("-m", "PEM"), ("-m", "PKCS8")])
def test_by_its_key(tmp_path: Path, form: tuple[str, ...]) -> None:
    for name, passphrase in (("open", ""), ("locked", "open sesame")):
        key = tmp_path / f"a {name} key"
        words = ("ssh-keygen", "-q", *form, "-t", "ecdsa", "-N", passphrase, "-f", key)
        subprocess.run(words, check=True)
        told = f"debug1: Server accepts key: {key} ECDSA SHA256:abc/+ {{}}\n" + (
            'Authenticated to h ([192.0.2.1]:22) using "publickey".\n'
        )
        assert needs_somebody(told.format("explicit")) is bool(passphrase)
        assert needs_somebody(told.format("explicit agent")) is False
        assert needs_somebody(f"debug1: read_passphrase: requested to askpass\n{told}") is True
        assert needs_somebody(told.replace("key ECDSA", "gone ECDSA")) is None
        assert needs_somebody(told.format("agent").replace("ECDSA ", "ECDSA-SK ")) is None
    (tmp_path / "other").write_bytes(b"-----BEGIN OPENSSH PRIVATE KEY-----\nno base64!\n")
    assert needs_somebody(told.replace(str(key), str(tmp_path / "other"))) is None


def test_what_the_other_end_writes_does_not_hold_us_up(tmp_path: Path) -> None:
    """Its banner comes in the same stream, and may name a file of which nothing ever comes."""
    os.mkfifo(tmp_path / "fifo")
    told = f"debug1: Server accepts key: {tmp_path}/fifo ECDSA SHA256:abc explicit\n"
    assert needs_somebody(f'{told}Authenticated to h using "publickey".\n') is None
