"""What the tests know of an S3 server that runs for them: where it is, its keys, its requests."""

import contextlib
import functools
import http.client
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import botocore.session
from botocore.config import Config
from web.servers.site import ServerProcess

KEY_ID, SECRET = "AKIATESTOFMPX", "a-secret-that-nobody-prints"
REGION = "us-east-1"


@dataclass
class S3Site:
    """A server under test, and its only user."""

    port: int  # on loopback
    server: ServerProcess

    @property
    def url(self) -> str:
        """What --endpoint-url is given."""
        return f"http://localhost:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """Settings of a user of AWS tools."""
        return {
            "AWS_ACCESS_KEY_ID": KEY_ID,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ENDPOINT_URL": self.url,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    @functools.cached_property
    def client(self) -> Any:
        """A client of AWS that looks at what is there; it takes a moment to make."""
        return botocore.session.Session().create_client(
            "s3",
            REGION,
            endpoint_url=self.url,
            aws_access_key_id=KEY_ID,
            aws_secret_access_key=SECRET,
            config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 0}),
        )

    @contextlib.contextmanager
    def running(self) -> Iterator[Self]:
        """It runs while in the `with` block."""
        self.start()
        try:
            yield self
        finally:
            self.server.kill()

    def start(self) -> None:
        """Start it, once more after `kill`, and then on the same port."""
        self.server.start(self._answers)

    def kill(self) -> None:
        """End it at once."""
        self.server.kill()

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection("localhost", self.port, timeout=60)
        try:
            connection.request("GET", "/")
            return connection.getresponse().status in (200, 403)
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
