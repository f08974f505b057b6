"""Connections to a GridFTP server of a grid: its certificate checked, ours shown, data connections alike.

The data connections of a session show a certificate that was made for it, or for its copy between two
servers, and whose key the server gets over the encrypted control channel (DCSC P): both ends show it, and
take nothing else. A server without DCSC is given a proxy of ours in its place, and both ends then show
certificates of our name.
"""

import socket
import ssl
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from cryptography import x509

from mpx.endpoints.ftp.gsi.control import GsiControl
from mpx.endpoints.ftp.gsi.data import GsiData
from mpx.endpoints.ftp.gsi.data_certificate import DataCertificate
from mpx.endpoints.ftp.gsi.handshake import GsiHandshake
from mpx.endpoints.ftp.gsi.options import GsiMemory, GsiOptions
from mpx.endpoints.ftp.secured import CERTIFICATE, PROXY, NoDcsc, Security
from mpx.endpoints.ftp.wire import Reply, command
from mpx.errors import AuthenticationError, ConnectionLost, MpxError, SessionEnded
from mpx.location import Location
from mpx.net import tcp
from mpx.net.x509.credential import Credential, find_credential
from mpx.net.x509.names import normalized, one_line
from mpx.net.x509.proxies import end_entity, sign_proxy
from mpx.net.x509.server_name import is_for, names_of
from mpx.net.x509.trust import TrustAnchors, find_trust_anchors, verified_chain
from mpx.report import Severity

_BY_MAPPING = ":globus-mapping:"  # the account that the server's grid-mapfile has for us
_DONE, _NOT_LOGGED_IN = 200, 530
_LENT = timedelta(days=1)  # a proxy of ours; a session that lasts longer is made anew, with another one
_DO_WITHOUT = "; give --no-dcau to do without"


class GsiSecurity(Security):
    """See Security."""

    def __init__(self, location: Location, options: GsiOptions, memory: GsiMemory) -> None:
        """Raises AuthenticationError where we have no credential, or no CAs to trust."""
        self._location, self._options, self._memory = location, options, memory
        self._place = location.host, location.port
        # Two servers that share a certificate both need DCSC for it.
        without = memory.without_dcsc
        has_dcsc = not without if options.data_certificate else self._place not in without
        self._credential: Credential = find_credential()
        self._anchors: TrustAnchors = find_trust_anchors(options.ca)
        self._uses_dcsc = options.dcau and has_dcsc
        self._delegates = options.delegate or (options.dcau and not has_dcsc)
        self._is_private = options.encrypt  # PROT P was said last, and not C
        self._made = DataCertificate(options.data_certificate) if self._uses_dcsc else None

    @property
    def tickets(self) -> None:
        """See Security: data connections are at ports."""

    @property
    def login(self) -> tuple[str, str]:
        """See Security: the server knows who we are."""
        return self._location.user or _BY_MAPPING, "mpx@"

    # --- the control channel -------------------------------------------------------------------------

    def control(
        self, reach: Callable[[], socket.socket], timeout_s: float, stop: Callable[[], bool]
    ) -> socket.socket:
        """See Security. A server that loses what comes together is asked step by step."""
        connection = reach()
        if self._place in self._memory.step_by_step:
            return self._control(connection, timeout_s, stop, together=False)
        try:
            return self._control(connection, timeout_s, stop, together=True)
        except SessionEnded:
            raise
        except ConnectionLost:
            control = self._control(reach(), timeout_s, stop, together=False)
            self._memory.step_by_step.add(self._place)
            return control

    def _control(
        self, connection: socket.socket, timeout_s: float, stop: Callable[[], bool], *, together: bool
    ) -> GsiControl:
        try:
            host, check = self._location.host, self._check_server
            trusted = self._anchors.folder
            done = GsiHandshake(
                connection, self._context(), self._peer, host, trusted, check, timeout_s, stop
            )
            done.begin(together=together)
            done.finish(self._delegated if self._delegates else None)
            return GsiControl(connection, done, self._peer)
        except BaseException:
            connection.close()
            raise

    def _context(self) -> ssl.SSLContext:
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        made.check_hostname = False  # see _check_server
        made.minimum_version = ssl.TLSVersion.TLSv1_2
        self._credential.load_into(made)
        self._anchors.load_into(made)
        return made

    def _check_server(self, chain: Sequence[x509.Certificate]) -> None:
        self._anchors.check(chain, self._peer)
        host, wanted = self._location.host, self._options.server_subject
        certificate = end_entity(chain)
        subject = one_line(certificate.subject)
        if wanted is not None:
            if normalized(subject) != normalized(wanted):
                raise AuthenticationError(
                    f"{self._peer} is {subject}, not {wanted} as --server-subject has it; nothing was sent"
                )
        elif not is_for(certificate, host):
            names = ", ".join(names_of(certificate)[:5]) or "no host"
            raise AuthenticationError(
                f"{self._peer} has a certificate for {names}, not for {host}; nothing was sent. If it is the "
                f"server that you mean, use its name in the URL, or --server-subject '{subject}'"
            )

    def _delegated(self, request: bytes) -> bytes:
        mine = self._credential
        try:
            return sign_proxy(request, mine.chain[0], mine.key, self._lent_until, limited=mine.is_limited)
        except ValueError as error:
            raise AuthenticationError(f"{self._peer} sent no request for a proxy: {error}") from None

    @property
    def _lent_until(self) -> datetime:
        """Until when a server may act in our name."""
        return min(self._credential.expires, datetime.now(UTC) + _LENT)

    # --- data connections ----------------------------------------------------------------------------

    @property
    def settings(self) -> tuple[bytes, ...]:
        """See Security."""
        if not self._options.dcau:
            return command("DCAU", "N"), _protection(is_private=False)
        protection = command("PBSZ", 1 << 20), _protection(is_private=self._is_private)
        if self._made is None:
            return command("DCAU", "A"), *protection
        return command("DCAU", "A"), *protection, self._made.handing_over

    def settled(self, replies: Sequence[Reply]) -> None:
        """See Security; raises NoDcsc where the server is to be given a proxy in place of a certificate."""
        for line, reply in zip(self.settings, replies, strict=True):
            verb = line.partition(b" ")[0]
            if verb == b"DCSC" and reply.code >= 500:
                self._memory.without_dcsc.add(self._place)
                raise NoDcsc(f"{self._peer} takes no certificate for data connections: {reply.reason}")
            if verb == b"DCSC" and not reply.is_ok:
                raise ConnectionLost(f"{self._peer} does not take a certificate now: {reply.reason}")
            if verb in (b"DCAU", b"PROT") and reply.code != _DONE:  # 202: ignored
                raise self._unprotected(line, reply)
        if self._delegates and not self._options.delegate:
            self._memory.note(
                f"{self._peer} takes no certificate for data connections, and was given a proxy of yours, "
                f"which lasts until {self._lent_until:%Y-%m-%d %H:%M} UTC",
                Severity.NOTICE,
            )

    def _unprotected(self, line: bytes, reply: Reply) -> AuthenticationError:
        refusal = f"{self._peer} refuses {line.decode('ascii').strip()}: {reply.code} {reply.reason}"
        if self._options.encrypt:
            return AuthenticationError(f"{refusal}; it does not encrypt file data: leave --encrypt out")
        return AuthenticationError(
            f"{refusal}; give --no-dcau to have data connections without authentication, if it permits that"
        )

    def protect(self, *, is_listing: bool) -> tuple[bytes, ...]:
        """See Security: listings are encrypted where data connections are authenticated, if that can be."""
        can_list_privately = is_listing and self._place not in self._memory.clear_listings
        is_private = self._options.dcau and (self._options.encrypt or can_list_privately)
        if is_private == self._is_private:
            return ()
        self._is_private = is_private
        return (_protection(is_private=is_private),)

    def protected(self, replies: Sequence[Reply]) -> None:
        """See Security. Where only listings cannot be encrypted they go in the clear, which is said."""
        for reply in replies:
            if reply.code == _DONE:
                continue
            if self._options.encrypt or not self._is_private:
                raise self._unprotected(_protection(is_private=self._is_private), reply)
            self._is_private = False
            self._memory.clear_listings.add(self._place)
            self._memory.note(
                f"listings by {self._peer} are not encrypted, only who sends them is authenticated: it "
                f"refuses PROT P: {reply.reason}",
                Severity.NOTICE,
            )

    @property
    def secured(self) -> GsiData | None:
        """See Security."""
        if not self._options.dcau:
            return None
        if self._made:
            return self._made.connections(self._peer, is_private=self._is_private, advice=_DO_WITHOUT)
        show, check = self._show_mine, self._check_mine
        return GsiData(self._peer, show, check, is_private=self._is_private, advice=_DO_WITHOUT)

    @property
    def data_identity(self) -> str:
        """See Security."""
        if not self._options.dcau:
            return ""
        return CERTIFICATE if self._uses_dcsc else PROXY

    def _show_mine(self, context: ssl.SSLContext) -> None:
        self._credential.load_into(context)
        self._anchors.load_into(context)

    def _check_mine(self, connection: ssl.SSLObject | ssl.SSLSocket) -> None:
        chain = verified_chain(connection)
        self._anchors.check(chain, self._peer)
        name = one_line(end_entity(chain).subject)
        if name != self._credential.name:
            raise AuthenticationError(
                f"a data connection is one of {name}, not of {self._credential.name}; no data passed"
            )

    # --- words ---------------------------------------------------------------------------------------

    def refused(self, reply: Reply, peer: str) -> MpxError | None:
        """See Security."""
        if reply.code != _NOT_LOGGED_IN:
            return None
        user, name = self._location.user, self._credential.name
        account = f"no account {user}" if user else "no account"
        return AuthenticationError(
            f"{peer} knows who we are ({name}) and has {account} for us: {reply.reason}; ask its operator "
            f'for a line in its grid-mapfile: "{name}" {user or "ACCOUNT"}'
        )

    def close(self) -> None:
        """See Security: nothing."""

    @property
    def _peer(self) -> str:
        return f"gsiftp://{tcp.show((self._location.host, self._location.port))}"


def _protection(*, is_private: bool) -> bytes:
    return command("PROT", "P" if is_private else "C")
