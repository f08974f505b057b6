"""CAs that are named by a file, as a folder that grid tools read."""

import ssl
from pathlib import Path

import pytest
from grids import shared_grid

from mpx.errors import UsageError
from mpx.net.x509.ca_folder import CaFolder
from mpx.net.x509.names import hashes
from mpx.net.x509.trust import TrustAnchors


def test_a_file(tmp_path: Path) -> None:
    grid = shared_grid()
    twin, other = grid.new_ca("Twin"), grid.new_ca("Twin")  # of one name
    file = tmp_path / "cas.pem"
    file.write_text(f"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n{twin.pem}\n{other.pem}")
    cas = CaFolder(str(file))
    new, old = hashes(twin.certificate.subject)
    names = {f"{each}.{end}" for each in (new, old) for end in ("0", "1", "signing_policy")}
    assert {each.name for each in Path(cas.folder).iterdir()} == names
    TrustAnchors(cas.folder).load_into(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    TrustAnchors(cas.folder).check([grid.issue("Bob", ca=twin).certificate, twin.certificate], "Bob")
    cas.close()
    assert not Path(cas.folder).exists()


def test_a_folder_that_is_one_already() -> None:
    trusted = shared_grid().trusted
    cas = CaFolder(str(trusted))
    assert cas.folder == str(trusted)
    cas.close()
    assert trusted.is_dir()


def test_what_is_no_ca(tmp_path: Path) -> None:
    (tmp_path / "text.pem").write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    for each in (tmp_path / "missing", tmp_path / "text.pem", tmp_path):
        with pytest.raises(UsageError, match="of --ca"):
            CaFolder(str(each))


@pytest.mark.filterwarnings("error")
def test_old_cas_of_the_system_are_taken_without_a_word() -> None:
    """Some have numbers that are not positive."""
    system = Path("/etc/ssl/certs/ca-certificates.crt")
    if not system.exists():
        pytest.skip("this system has its CAs elsewhere")
    made = CaFolder(str(system))
    assert any(Path(made.folder).iterdir())
    made.close()
