"""Credentials, region and server of S3 as the AWS tools find them, and signatures (botocore).

Nothing else imports botocore, and nobody imports this before an s3:// location is used.
"""

import functools
import hashlib
import json
import os
import re
import threading
import time
from collections.abc import Mapping

from mpx.endpoints.s3.options import S3Options
from mpx.errors import AuthenticationError, UsageError

try:
    import botocore.session
    from botocore import UNSIGNED
    from botocore.auth import S3SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError, ProfileNotFound, SSOError, TokenRetrievalError
    from botocore.loaders import Loader, create_loader
except ImportError as missing:
    raise UsageError(
        f"s3:// needs botocore ({missing}); install it with mpx, in its sources: pip install '.[s3]'"
    ) from None

# botocore stumbles over JSON and settings of another form than it expects.
_STUMBLES = (ValueError, AttributeError, LookupError, TypeError)
# What comes of settings, of a program (credential_process) that is not there or says something else, and of a
# question for a code (MFA) that nobody is there to answer.
_UNUSABLE = (BotoCoreError, ClientError, OSError, EOFError, *_STUMBLES)
_UNFIT = re.compile(r"[^\x21-\x7e]")  # for keys and tokens
_OF_AWS = re.compile(r"https://s3[.a-z0-9-]*\.amazonaws\.com\Z")
NOTHING = hashlib.sha256(b"").hexdigest()  # of a request without a body
UNSIGNED_BODY = "UNSIGNED-PAYLOAD"
HASH = "X-Amz-Content-SHA256"
_USUAL_REGION = "us-east-1"
_JUST_S = 10.0  # since when credentials are new to all that were refused with those before
_SIGNED = ("content-md5", "content-type")  # and all that begins with x-amz-; proxies may change others


class AwsSession:
    """For any thread: botocore renews credentials under a lock of its own."""

    def __init__(self, options: S3Options) -> None:
        """Raises UsageError for a profile that is not there, and for settings that make no sense."""
        self._options = options
        self._renewing = threading.Lock()
        self._renewed_s: float | None = None
        self.region = ""
        try:
            self._session = botocore.session.Session(profile=options.profile)
            loader = _service_loader(self._session.get_config_variable("data_path"))
            self._session.register_component("data_loader", loader)
            self.region = str(
                options.region
                or os.environ.get("AWS_REGION")
                or self._session.get_config_variable("region")
                or _USUAL_REGION
            )
            self.ca: str | None = self._session.get_config_variable("ca_bundle")
            self._find_server()
            self._credentials = self._session.get_credentials() if options.signs else None
        except ProfileNotFound as error:
            raise UsageError(f"{error}: name one of ~/.aws/config with --profile") from None
        except _UNUSABLE as error:
            raise UsageError(f"the settings for S3 cannot be used: {self._reason(error)}") from None

    def _reason(self, error: Exception) -> str:
        """Return in one line why there are no credentials or settings, and what to do."""
        if isinstance(error, json.JSONDecodeError):
            return f"what credential_process prints is not JSON: {error.msg}"
        if isinstance(error, EOFError):
            return "a code (MFA) is asked for, and nobody is there to type it"
        told = " ".join(str(error).split()) or type(error).__name__
        if isinstance(error, (SSOError, TokenRetrievalError)):
            profile = f" --profile {self._options.profile}" if self._options.profile else ""
            return f"{told}; run aws sso login{profile}"
        return told

    def _find_server(self) -> None:
        # Unsigned: else it looks for credentials, which may take seconds.
        config = Config(
            signature_version=UNSIGNED,
            s3={"us_east_1_regional_endpoint": "regional"},
            ignore_configured_endpoint_urls=self._options.endpoint_url == "",
        )
        client = self._session.create_client(
            "s3", self.region, endpoint_url=self._options.endpoint_url or None, config=config
        )
        self.endpoint_url = str(client.meta.endpoint_url)
        styles = client.meta.config.s3 or {}
        self.style = str(styles.get("addressing_style") or "auto")
        if styles.get("use_accelerate_endpoint") and _OF_AWS.match(self.endpoint_url):
            both = ".dualstack" if styles.get("use_dualstack_endpoint") else ""
            self.endpoint_url = f"https://s3-accelerate{both}.amazonaws.com"

    def use_region(self, region: str) -> None:
        """Ask for this region from now on."""
        self.region = region
        self._find_server()

    @property
    def has_credentials(self) -> bool:
        """Whether requests are signed."""
        return self._credentials is not None

    def renew(self) -> bool:
        """Look for credentials anew, as a server says that those in use have expired; tell whether there are.

        botocore itself does that only where they say until when they hold, and by the clock of this host.
        """
        with self._renewing:
            if self._credentials is None:
                return False
            if self._renewed_s is not None and time.monotonic() - self._renewed_s < _JUST_S:
                return True  # for another thread, that was refused too
            try:
                found = botocore.session.Session(profile=self._options.profile).get_credentials()
                if (
                    found is None
                    or found.get_frozen_credentials() == self._credentials.get_frozen_credentials()
                ):
                    return False
            except _UNUSABLE:
                return False
            self._credentials, self._renewed_s = found, time.monotonic()
            return True

    def signed(self, method: str, url: str, headers: Mapping[str, str], body_hash: str) -> dict[str, str]:
        """Return the headers with what signs them; raises AuthenticationError for what cannot be renewed."""
        if self._credentials is None:
            if self._options.signs:
                raise AuthenticationError(f"there are no credentials for S3; {HOW_TO_LOG_IN}; {OR_UNSIGNED}")
            return dict(headers)
        parts = {
            name: value
            for name, value in headers.items()
            if name.lower().startswith("x-amz-") or name.lower() in _SIGNED
        }
        request = AWSRequest(method=method, url=url, headers=parts)
        request.context["mpx_body_hash"] = body_hash
        try:
            frozen = self._credentials.get_frozen_credentials()
            _Signature(frozen, "s3", self.region).add_auth(request)
        except _UNUSABLE as error:
            raise AuthenticationError(
                f"the credentials for S3 cannot be had: {self._reason(error)}"
            ) from None
        if _UNFIT.search(f"{frozen.access_key}{frozen.token or ''}"):  # they would be headers of their own
            raise AuthenticationError(
                "the credentials for S3 hold a blank, a line end or another unfit character; check the file "
                "or variable (AWS_ACCESS_KEY_ID, AWS_SESSION_TOKEN) that they come from"
            )
        return {**headers, **{str(name): str(value) for name, value in request.headers.items()}}


@functools.cache
def _service_loader(data_path: str | None) -> Loader:
    """Return what reads the descriptions of services: a megabyte, once for all copies of a process."""
    return create_loader(data_path)


HOW_TO_LOG_IN = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, run aws configure, or name a --profile"
OR_UNSIGNED = "give --no-sign-request for a bucket that is open to all"


class _Signature(S3SigV4Auth):  # type: ignore[misc]  # botocore has no types
    """Signature Version 4, with the hash of a body that is not in memory."""

    def payload(self, request: AWSRequest) -> str:
        """Return what stands for the body."""
        return str(request.context["mpx_body_hash"])
