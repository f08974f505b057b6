"""TLS with servers that speak HTTP: whom we trust, and the certificate that we show.

A server is always checked, by its name and by who vouches for it; there is no way around that but to name its
CA (`--ca`). What it shows at the end of its chain is no proxy: those are for users.
"""

import os
import ssl

from mpx.errors import AuthenticationError
from mpx.net.tls import TlsSocket
from mpx.net.x509.named_cas import are_hashed, files_of, no_certificate, unreadable
from mpx.text import named

_OTHER_CERTIFICATE = "name another certificate, with a key that has no passphrase, by --cert and --key"


def client_context(
    *, ca: str | None, grid: bool, certificate: str | None, key: str | None, shows_usual: bool = True
) -> tuple[ssl.SSLContext, list[str]]:
    """Return how TLS begins with a server, and notes for the user.

    `ca`: a file or folder of CAs, in place of all others (--ca). `grid`: a server of a grid (davs), whose CAs
    count too, and proxies where it `shows_usual` ones. `certificate`, `key`: files of --cert and --key.
    Raises UsageError for a `ca` that cannot be used, AuthenticationError for a certificate that cannot, or
    where nobody is trusted.
    """
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # which checks names and certificates
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.sslsocket_class = TlsSocket
    made.set_alpn_protocols(["http/1.1"])
    notes: list[str] = []
    if ca is not None:
        _trust_named(made, ca)
    else:
        _trust_usual(made, notes, grid=grid)
    if certificate is not None:
        from mpx.net.x509.credential import read_credential  # which takes long to import

        read_credential(certificate, key or certificate, _OTHER_CERTIFICATE).load_into(made)
        made.post_handshake_auth = True
    elif grid and shows_usual:
        _show_usual(made, notes)
    return made, notes


def _trust_named(made: ssl.SSLContext, ca: str) -> None:
    """Trust the CAs of a file or folder, also those that are not at the top."""
    made.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
    files = files_of(ca)
    if files is None:
        made.load_verify_locations(capath=ca)
        return
    for file in files:
        try:
            made.load_verify_locations(cafile=file)
        except ssl.SSLError:
            raise no_certificate(file) from None
        except OSError as error:
            raise unreadable(file, error) from None


def _trust_usual(made: ssl.SSLContext, notes: list[str], *, grid: bool) -> None:
    """Trust the CAs of the system and, for a server of a grid, those of grids."""
    made.load_default_certs()
    paths = ssl.get_default_verify_paths()
    folders = os.environ.get(paths.openssl_capath_env) or paths.openssl_capath
    are_any = made.cert_store_stats()["x509"] > 0 or any(map(_has_hashed, folders.split(":")))
    if grid:
        from mpx.net.x509.trust import usual_folders

        usual = usual_folders()
        found = next(filter(os.path.isdir, usual), None)
        if found:
            made.load_verify_locations(capath=found)
            are_any = are_any or _has_hashed(found)
        elif os.environ.get("X509_CERT_DIR"):
            notes.append(
                f"X509_CERT_DIR names {named(usual[0])}, which is no folder: no CA of a grid is trusted"
            )
    if not are_any:
        file = os.environ.get(paths.openssl_cafile_env) or paths.openssl_cafile
        raise AuthenticationError(
            f"no CA is trusted, so no server can be: there is none in {named(file)} and {named(folders)}; "
            "install those of the system (ca-certificates), or name a file of CAs with --ca"
        )


def _has_hashed(folder: str) -> bool:
    try:
        return are_hashed(os.listdir(folder))
    except OSError:
        return False


def _show_usual(made: ssl.SSLContext, notes: list[str]) -> None:
    """Show the certificate that grid tools would, if there is one; one that is not good is left out."""
    from mpx.net.x509.credential import NoCredential, find_credential

    try:
        find_credential().load_into(made)
        made.post_handshake_auth = True
    except NoCredential:
        return
    except AuthenticationError as error:
        notes.append(f"no certificate of yours is shown: {error}")
