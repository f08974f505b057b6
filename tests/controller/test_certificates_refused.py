"""Certificates and keys that a controller cannot use: it says what is wrong with which, and ends."""

from pathlib import Path

import pytest
from certificates import make_certificates, openssl
from mpx_command import mpx, refused


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates, and a key with a passphrase."""
    made = tmp_path_factory.mktemp("certificates")
    make_certificates(made)
    openssl("ec", "-aes128", "-passout", "pass:secret", "-in", "switch.key", "-out", "locked.key", at=made)
    return made


@pytest.mark.parametrize("section", ["openflow", "api"])
@pytest.mark.parametrize(
    ("certificate", "key", "says"),
    [
        ("none.pem", "switch.key", "none.pem cannot be read: No such file"),
        ("switch.pem", "none.key", "none.key cannot be read: No such file"),
        ("switch.pem", "controller.key", "does not belong to the certificate"),
        ("switch.pem", "locked.key", "locked.key has a passphrase"),
        ("signed", "switch.key", "signed not a certificate"),
    ],
)
def test_certificates_that_cannot_be_used(
    folder: Path, tmp_path: Path, section: str, certificate: str, key: str, says: str
) -> None:
    told = f'[{section}]\ncertificate = "{folder}/{certificate}"\nkey = "{folder}/{key}"\n'
    told += f'authority = "{folder}/authority.pem"\n' if section == "openflow" else ""
    (tmp_path / "controller.toml").write_text(told)
    ports = ("--listen", "127.0.0.1:0", "--api", "127.0.0.1:0")
    refused(mpx("controller", "--config", tmp_path / "controller.toml", *ports), 2, f"{section}: ", says)


def test_an_authority_that_is_none(folder: Path, tmp_path: Path) -> None:
    names = {"certificate": "switch.pem", "key": "switch.key", "authority": "signed"}
    told = "".join(f'{name} = "{folder}/{file}"\n' for name, file in names.items())
    (tmp_path / "controller.toml").write_text(f"[openflow]\n{told}")
    ended = mpx("controller", "--config", tmp_path / "controller.toml", "--api", "127.0.0.1:0")
    refused(ended, 2, "openflow: ", "signed has no certificate")
