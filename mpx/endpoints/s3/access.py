"""What all connections of a copy with one bucket share: where it is, and how requests are signed."""

import ipaddress
import os
import re
import threading
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import parse_qs, quote, urlsplit

from mpx.endpoints.s3 import refusals
from mpx.endpoints.s3.asked_uploads import AskedUploads
from mpx.endpoints.s3.aws_session import HASH, HOW_TO_LOG_IN, NOTHING, UNSIGNED_BODY, AwsSession
from mpx.endpoints.s3.options import S3Options
from mpx.endpoints.s3.stored_sums import md5_of
from mpx.endpoints.s3.uploads import Uploads
from mpx.endpoints.web.access import WebAccess
from mpx.endpoints.web.connection import WebRequest
from mpx.endpoints.web.names import encoded
from mpx.endpoints.web.options import WebOptions
from mpx.endpoints.web.reply import HttpReply
from mpx.endpoints.web.url import Origin, WebUrl
from mpx.engine.file_transfer import FileTransfer
from mpx.errors import ConnectionLost, DestinationError, IsThere, MpxError, UsageError
from mpx.location import Location
from mpx.report import OnNote, no_note

_CONDITION = "If-None-Match"
_ONLY_NEW = {_CONDITION: "*"}
_USUAL_PORTS = {"https": 443, "http": 80}
_NOT_IN_URLS = re.compile(r"[^\x21-\x7e]")
_REGION = re.compile("[a-z][a-z0-9-]{0,30}[a-z0-9]")
_DIRECTORY = "--x-s3"  # what names of directory buckets end with
_AWS = re.compile(r"\.amazonaws\.com(\.cn)?\Z")
_HOST_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{1,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*")


class ConditionUnknown(ConnectionLost):
    """The server does not know the condition that a request had: the same is to be asked without it."""


class S3Access(WebAccess):
    """For any thread. `uploads`: what of them is begun and not ended; `asked`: what may have begun."""

    def __init__(
        self, location: Location, options: WebOptions, s3: S3Options, note: OnNote = no_note
    ) -> None:
        """Raises UsageError for settings that cannot be used."""
        self.bucket = location.host
        self._aws = AwsSession(s3)
        self._server: tuple[Origin, str] = _server(self.bucket, self._aws)  # and what stands before keys
        if self.bucket.endswith(_DIRECTORY) and _AWS.search(self._server[0].host):
            raise UsageError(
                f"{self.bucket} is a directory bucket (S3 Express), which has logins of its own that mpx "
                "does not know; use a bucket of the usual kind"
            )
        self._moving = threading.Lock()  # to another region
        ca = options.ca or self._aws.ca
        if not options.ca and ca and not os.path.exists(ca):
            raise UsageError(f"{ca}, named by AWS_CA_BUNDLE or ca_bundle, does not exist; name a file of CAs")
        super().__init__(location, replace(options, ca=ca), note=note, origin=self._server[0])
        self.speaks_dav = False
        self.replaces_unseen = s3.replaces_unseen
        self._always = {"x-amz-request-payer": s3.payer} if s3.payer else {}  # headers
        # Whether the server does not refuse to be told that it is to store no object in the place of another.
        self.takes_conditions = True
        self.keeps_crc32 = True  # of all of an object, as far as is known, and not of its parts alone
        self.uploads = Uploads(self.bucket)
        self.asked = AskedUploads(self.bucket)

    def url_of(self, name: str) -> WebUrl:
        """See WebAccess. A name is a slash and a key."""
        origin, before = self._server
        return WebUrl(origin, before + encoded(name))

    def asking(self, name: str, query: Mapping[str, str | int | None]) -> WebUrl:
        """Return the URL of a question about a key, or about the bucket (`/`); None: without a value."""
        pairs = (
            quote(key, safe="") + ("=" + quote(str(value), safe="") if value is not None else "=")
            for key, value in sorted(query.items())
        )
        url = self.url_of(name)
        return WebUrl(url.origin, f"{url.target}?{'&'.join(pairs)}")

    @property
    def looks_before(self) -> bool:
        """Whether an object is to be looked for right before another is stored, as it is not to be replaced.

        AWS is known to heed conditions, or to say that it knows none (of copies); others may ignore them.
        """
        heeds = self.takes_conditions and _AWS.search(self.origin.host)
        return self.options.only_new and not heeds

    def is_to_ask_without(self, error: MpxError, *, had_condition: bool) -> bool:
        """Tell whether a request failed by its condition; another one may have shown that meanwhile.

        `had_condition`: `takes_conditions` as it was before the request.
        """
        may_be = isinstance(error, (ConditionUnknown, DestinationError)) and not isinstance(error, IsThere)
        return may_be and had_condition and not self.takes_conditions

    @property
    def server_url(self) -> str:
        """See SharedConnections. Empty for AWS, where the name of a bucket says which one it is."""
        origin, before = _endpoint(self._aws)
        return "" if _AWS.search(origin.host) else f"{origin}{before}"

    def stored_as(self, file: FileTransfer) -> WebUrl:
        """See WebAccess. An object appears once it is whole, and an older one stays until then."""
        return self.url_of(file.final)

    def request(self, method: str, url: WebUrl, headers: Mapping[str, str]) -> WebRequest:
        """See WebAccess. Who knows a body before gives its hash; another server is shown nothing."""
        if url.origin != self.origin:
            return WebRequest(method, url, headers)
        given = {**self._always, **headers}
        if self.options.only_new and self.takes_conditions and _makes_object(method, url):
            given |= _ONLY_NEW
        body_hash = given.pop(HASH, UNSIGNED_BODY if method == "PUT" else NOTHING)
        signed = self._aws.signed(method, f"{url.origin}{url.target}", given, body_hash)
        return WebRequest(method, url, signed)

    def digest_with(self, reply: HttpReply, algorithm: str) -> str | None:
        """See WebAccess. It is the ETag, but of an object that was stored in parts or is encrypted."""
        return md5_of(reply) if algorithm == "md5" else None

    def has_credentials(self, origin: Origin) -> bool:
        """See WebAccess."""
        return origin == self.origin and self._aws.has_credentials

    def how_to_log_in(self, origin: Origin, reply: HttpReply) -> str:  # noqa: ARG002  it is the same for all
        """See WebAccess. Who has no credentials and asks all the same was told not to sign."""
        told = "" if self._aws.has_credentials else ", and leave out --no-sign-request"
        return f"{HOW_TO_LOG_IN}{told}"

    @property
    def admission(self) -> None:
        """See WebAccess. Credentials that end are renewed before."""
        return None

    def refused(self, reply: HttpReply, url: WebUrl, what: str, kind: type[MpxError]) -> MpxError:
        """See WebAccess. What has not been read of the body tells more than the status."""
        body = b"" if reply.is_ended else reply.read(refusals.LARGEST_ERROR_BYTES)
        return self.refused_with(reply, body, url, what, kind)

    def refused_with(
        self, reply: HttpReply, body: bytes, url: WebUrl, what: str, kind: type[MpxError]
    ) -> MpxError:
        """Return the error for an answer whose body was read; expired credentials are renewed if possible."""
        if url.origin == self.origin and self.renews(body):
            return ConnectionLost(
                f"{url.origin} does not {what} {url.path}: expired credentials, now renewed"
            )
        if self.options.only_new and kind is DestinationError:
            if self.takes_conditions and refusals.is_unknown(reply, body, _CONDITION):
                self.takes_conditions = False
                return ConditionUnknown(f"{url.origin} takes no conditions ({_CONDITION}); asked without")
            if refusals.is_not_met(reply, body) and not _is_part(url):  # which is never told to be new
                return IsThere(f"{url.origin}{url.path}")
        help_text = "" if self.has_credentials(url.origin) else self.how_to_log_in(url.origin, reply)
        found = refusals.refused(reply, body, url, what, kind, help_text=help_text)
        return found or super().refused(reply, url, what, kind)

    def renews(self, body: bytes) -> bool:
        """Tell whether an answer says that our credentials have expired, and there are others by now."""
        return refusals.S3Error(body).code in refusals.EXPIRED and self._aws.renew()

    def moves_to(self, reply: HttpReply, body: bytes) -> bool:
        """Take the region that an answer names for that of the bucket; tell whether it is another one."""
        region = reply.header("x-amz-bucket-region") or refusals.S3Error(body).region
        with self._moving:
            if not _REGION.fullmatch(region) or region == self._aws.region:
                return False
            self.note(f"the bucket {self.bucket} is in the region {region}, which is used")
            self._aws.use_region(region)
            self._server = _server(self.bucket, self._aws)
            self.origin = self._server[0]
        return True


def _makes_object(method: str, url: WebUrl) -> bool:
    """Tell whether a request has an object appear: no part of one, nor the beginning of an upload."""
    query = _query(url)
    return (method == "PUT" and not query) or (method == "POST" and "uploadId" in query)


def _is_part(url: WebUrl) -> bool:
    return "partNumber" in _query(url)


def _query(url: WebUrl) -> Mapping[str, list[str]]:
    return parse_qs(urlsplit(url.target).query, keep_blank_values=True)


def _server(bucket: str, aws: AwsSession) -> tuple[Origin, str]:
    """Return the server of a bucket, and the beginning of the paths there."""
    endpoint, before = _endpoint(aws)
    if not _is_in_host_name(bucket, endpoint.host, aws, is_secure=endpoint.is_secure):
        return endpoint, f"{before}/{bucket}"
    return replace(endpoint, host=f"{bucket}.{endpoint.host}"), before


def _endpoint(aws: AwsSession) -> tuple[Origin, str]:
    """Return the server of all buckets, and the beginning of the paths there; raises UsageError."""
    parts = urlsplit(aws.endpoint_url)
    try:
        host, port = parts.hostname or "", parts.port or _USUAL_PORTS[parts.scheme]
    except (ValueError, KeyError):
        host, port = "", 0
    is_whole = host and not (parts.query or parts.fragment or parts.username is not None)
    if not is_whole or _NOT_IN_URLS.search(parts.path):
        raise UsageError(
            "--endpoint-url (AWS_ENDPOINT_URL) is not the URL of a server; write https://HOST:PORT"
        )
    return Origin(parts.scheme == "https", host, port), parts.path.rstrip("/")


def _is_in_host_name(bucket: str, host: str, aws: AwsSession, *, is_secure: bool) -> bool:
    """Tell whether a bucket is named in the host ("virtual host"), as botocore decides; else in the path."""
    if not _HOST_NAME.fullmatch(bucket) or (is_secure and "." in bucket) or _is_address(host):
        return False
    return aws.style == "virtual" or (aws.style == "auto" and _AWS.search(host) is not None)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
