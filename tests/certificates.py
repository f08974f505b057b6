"""Certificates of a controller and of a switch from one authority, and one of another."""

import subprocess
from pathlib import Path

KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def make_certificates(folder: Path) -> None:
    """Make `authority`, `controller`, `switch`, `other` and `stranger`, each as .pem and .key.

    As RFC 5280 asks for: Python 3.13 takes no others.
    """
    (folder / "signed").write_text("authorityKeyIdentifier=keyid\nsubjectKeyIdentifier=hash\n")
    for authority, signed in (("authority", ("controller", "switch")), ("other", ("stranger",))):
        own = ("-keyout", f"{authority}.key", "-out", f"{authority}.pem")
        signs = ("-addext", "keyUsage=critical,keyCertSign,cRLSign")
        openssl("req", "-x509", *KEY, *own, *_name(authority), *signs, at=folder)
        for each in signed:
            openssl("req", *KEY, "-keyout", f"{each}.key", "-out", f"{each}.csr", *_name(each), at=folder)
            by = ("-CA", f"{authority}.pem", "-CAkey", f"{authority}.key", "-CAcreateserial")
            whole = ("-in", f"{each}.csr", "-out", f"{each}.pem", "-copy_extensions", "copy")
            openssl("x509", "-req", *by, *whole, "-extfile", "signed", at=folder)


def openssl(*words: str, at: Path) -> None:
    """Run openssl in a folder; it is to succeed."""
    subprocess.run(["openssl", *words], cwd=at, check=True, capture_output=True)


def _name(of: str) -> tuple[str, ...]:
    return ("-subj", f"/CN={of}", "-addext", "subjectAltName=IP:127.0.0.1")
