"""A server of SRM 2.2 for the calls that gfal2 makes, as no real one can be installed here.

SOAP over httpg: TLS with a byte in front (whether a proxy is handed over). Its files are those of a server of
GridFTP, to which its TURLs lead. TLS 1.3 is left out, as Globus wants something of its own there.
"""

import contextlib
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self
from urllib.parse import quote
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from mpx_lab.private_grid import PrivateGrid

_ENVELOPE = (
    '<?xml version="1.0" encoding="UTF-8"?>'
    '<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/" '
    'xmlns:srm="http://srm.lbl.gov/StorageResourceManager"><e:Body>'
    "<srm:{0}Response><{0}Response>{1}</{0}Response></srm:{0}Response></e:Body></e:Envelope>"
)
_SURLS = ("urlArray", "SURL", "sourceSURL", "targetSURL", "fromSURL", "toSURL")
_MISSING, _DONE, _THERE = "SRM_INVALID_PATH", "SRM_SUCCESS", "SRM_DUPLICATION_ERROR"
_OF_PROXIES = 0x40  # X509_V_FLAG_ALLOW_PROXY_CERTS
_PROXY_IS_HANDED_OVER = b"D"


class FakeSrm:
    """Serves while in the `with` block. `calls`: that were made, by name."""

    def __init__(self, grid: PrivateGrid, folder: Path, turls: str) -> None:
        """`turls`: the URL of the folder, with a slash at its end."""
        self.folder, self.calls = folder, list[str]()
        self.may_move: Callable[[str, str], bool] = lambda _old, _new: True  # is asked with both names
        self._turls = turls
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(grid.folder / "host.pem", grid.folder / "host.key")
        self._tls.load_verify_locations(capath=str(grid.trusted))
        self._tls.verify_mode = ssl.CERT_REQUIRED
        self._tls.verify_flags |= _OF_PROXIES
        self._tls.maximum_version = ssl.TLSVersion.TLSv1_2
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"srm://localhost:{self._listener.getsockname()[1]}/"

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), self._tls.wrap_socket(connection, server_side=True) as tls:
            assert tls.recv(1) != _PROXY_IS_HANDED_OVER
            for body in _requests(tls):
                name, answer = self._answer(body)
                sent = _ENVELOPE.format(name, answer).encode("utf-8", "surrogateescape")
                head = (
                    f"HTTP/1.1 200 OK\r\nContent-Type: text/xml; charset=utf-8\r\nContent-Length: {len(sent)}"
                )
                tls.sendall(f"{head}\r\n\r\n".encode() + sent)

    # --- what is answered ------------------------------------------------------------------------------

    def _answer(self, body: bytes) -> tuple[str, str]:
        (call,) = ElementTree.fromstring(body)[0]
        name = call.tag.rpartition("}")[2]
        self.calls.append(name)
        surls = [each.text or "" for each in call.iter() if each.tag.rpartition("}")[2] in _SURLS]
        does: dict[str, Callable[[list[str]], str]] = {
            "srmPing": lambda _: "<versionInfo>v2.2</versionInfo>",
            "srmLs": lambda surls: self._listed(surls, is_deep=b"<numOfLevels>0<" not in body),
            "srmPrepareToGet": self._to_get,
            "srmPrepareToPut": self._to_put,
            "srmRm": lambda surls: _each("surl", surls, lambda surl: _tried(self._path(surl).unlink)),
            "srmMkdir": lambda surls: _status("returnStatus", _tried(self._path(surls[0]).mkdir)),
            "srmMv": lambda surls: _status("returnStatus", self._moved(*surls)),
        }
        return name, does.get(name, lambda surls: _each("surl", surls, lambda _: _DONE))(surls)

    def _path(self, surl: str) -> Path:
        name = re.sub("^srm://[^/]*", "", surl).rpartition("?SFN=")[2]
        return self.folder / name.lstrip("/")

    def _turl(self, surl: str) -> str:
        turl = f"{self._turls}{quote(str(self._path(surl).relative_to(self.folder)))}"
        return f"<transferURL>{turl}</transferURL>"

    def _to_get(self, surls: list[str]) -> str:
        def state(surl: str) -> str:
            return "SRM_FILE_PINNED" if self._path(surl).is_file() else _MISSING

        return _each("sourceSURL", surls, state, self._turl)

    def _to_put(self, surls: list[str]) -> str:
        return _each("SURL", surls, lambda _: "SRM_SPACE_AVAILABLE", self._turl)

    def _moved(self, old: str, new: str) -> str:
        if self._path(new).exists():
            return _THERE
        if not self.may_move(self._path(old).name, self._path(new).name):
            return "SRM_AUTHORIZATION_FAILURE"
        return _tried(lambda: self._path(old).rename(self._path(new)))

    def _listed(self, surls: list[str], *, is_deep: bool) -> str:
        paths = [self._path(surl) for surl in surls]
        state = _DONE if all(path.exists() for path in paths) else "SRM_FAILURE"
        details = "".join(self._described(path, is_deep=is_deep) for path in paths)
        return f"{_status('returnStatus', state)}<details>{details}</details>"

    def _described(self, path: Path, *, is_deep: bool) -> str:
        told = f"<path>/{escape(str(path.relative_to(self.folder)))}</path>"
        if not path.exists():
            return f"<pathDetailArray>{told}{_status('status', _MISSING)}</pathDetailArray>"
        found = path.stat()
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(found.st_mtime))
        told += f"{_status('status', _DONE)}<size>{found.st_size}</size>"
        told += f"<lastModificationTime>{when}</lastModificationTime>"
        told += f"<type>{'DIRECTORY' if path.is_dir() else 'FILE'}</type><fileLocality>ONLINE</fileLocality>"
        if is_deep and path.is_dir() and (below := sorted(path.iterdir())):
            inner = "".join(self._described(each, is_deep=False) for each in below)
            told += f"<arrayOfSubPaths>{inner}</arrayOfSubPaths>"
        return f"<pathDetailArray>{told}</pathDetailArray>"


def _requests(tls: ssl.SSLSocket) -> Iterator[bytes]:
    """Yield the bodies of requests until the other end closes."""
    with tls.makefile("rb") as stream:
        while stream.readline():
            length = 0
            while (line := stream.readline()).strip():
                name, _, value = line.decode("latin-1").partition(":")
                length = int(value) if name.lower() == "content-length" else length
            yield stream.read(length)


def _status(tag: str, code: str) -> str:
    return f"<{tag}><statusCode>{code}</statusCode></{tag}>"


def _tried(does: Callable[[], object]) -> str:
    try:
        does()
    except FileExistsError:
        return _THERE
    except OSError:
        return _MISSING
    return _DONE


def _each(
    tag: str, surls: list[str], state: Callable[[str], str], more: Callable[[str], str] | None = None
) -> str:
    """Answer a request about several files."""
    codes = [state(surl) for surl in surls]
    found = [more(surl) if more else "" for surl in surls]
    arrays = "".join(
        f"<statusArray><{tag}>{escape(surl)}</{tag}>{_status('status', code)}{each}</statusArray>"
        for surl, code, each in zip(surls, codes, found, strict=True)
    )
    whole = _status("returnStatus", "SRM_FAILURE" if _MISSING in codes else _DONE)
    token = "<requestToken>one</requestToken>" if more else ""
    return f"{whole}{token}<arrayOfFileStatuses>{arrays}</arrayOfFileStatuses>"
