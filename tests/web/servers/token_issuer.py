"""An issuer of WLCG tokens: its https server has the public key that servers check them with."""

import base64
import contextlib
import json
import ssl
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from web.servers.host_certificate import host_certificate

ANYWHERE = "https://wlcg.cern.ch/jwt/v1/any"  # the audience that every server takes for its own
ALL = "storage.read:/ storage.create:/ storage.modify:/"
KEY_NAME = "one"


class TokenIssuer:
    """Makes tokens; `url` is who they are from."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._key = rsa.generate_private_key(65537, 2048)

    def token(
        self,
        scope: str = ALL,
        *,
        audience: str = ANYWHERE,
        lasts_s: float = 3600,
        claims: Mapping[str, object] | None = None,
    ) -> str:
        """A signed token, which has ended already where `lasts_s` is negative; `claims`: more, or others."""
        now_s = int(time.time())
        said: dict[str, object] = {
            "wlcg.ver": "1.0",
            "iss": self.url,
            "sub": "alice",
            "aud": audience,
            "scope": scope,
            "iat": now_s + min(0, int(lasts_s)) - 60,
            "nbf": now_s + min(0, int(lasts_s)) - 60,
            "exp": now_s + int(lasts_s),
            "jti": str(uuid.uuid4()),
            **(claims or {}),
        }
        header = {"alg": "RS256", "typ": "JWT", "kid": KEY_NAME}
        signed = ".".join(_encoded(json.dumps(part).encode()) for part in (header, said))
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{_encoded(signature)}"

    def documents(self) -> dict[str, object]:
        """What its server answers, by path."""
        numbers = self._key.public_key().public_numbers()
        key = {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": KEY_NAME}
        for name, number in (("n", numbers.n), ("e", numbers.e)):
            key[name] = _encoded(number.to_bytes((number.bit_length() + 7) // 8))
        return {
            "/.well-known/openid-configuration": {"issuer": self.url, "jwks_uri": f"{self.url}/jwks"},
            "/jwks": {"keys": [key]},
        }


@contextlib.contextmanager
def token_issuer() -> Iterator[TokenIssuer]:
    """An issuer, whose server is in the network of the calling thread."""
    documents: dict[str, object] = {}

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path not in documents:
                self.send_error(404)
                return
            body = json.dumps(documents[self.path]).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    shown = host_certificate()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(shown.certificate, shown.key)
    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        issuer = TokenIssuer(f"https://localhost:{server.server_port}")
        documents.update(issuer.documents())
        thread = threading.Thread(target=server.serve_forever, name="token issuer")
        thread.start()
        try:
            yield issuer
        finally:
            server.shutdown()
            thread.join()


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
