"""A GridFTP or FTP server as an endpoint: names and metadata over one control channel of its own."""

import contextlib
import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

from mpx import gridftp_wire as wire
from mpx.endpoint import Commit, FileInfo, Kind, Part, Rtt, partial_name
from mpx.errors import DestinationError, Interrupted, MpxError, SourceError
from mpx.gridftp_listing import entry_info, is_missing, parse_time, read_lines
from mpx.gridftp_session import PIPELINE, Session, SessionOptions, reply_error
from mpx.gridftp_wire import Reply, command
from mpx.location import Location

_LEADS_NOWHERE = ("not a directory", "too many levels of symbolic links")


class GridFtpEndpoint:
    """The files of a server. Opens its session when first used."""

    def __init__(self, location: Location, options: SessionOptions, *, writing: bool) -> None:
        self.location = location
        self._options = options
        self._refusal: type[MpxError] = DestinationError if writing else SourceError
        self._session: Session | None = None

    @property
    def session(self) -> Session:
        """The control channel, opened and logged in when first asked for."""
        if self._session is None:
            session = Session(self.location, self._options)
            try:
                session.login()
            except BaseException:
                session.close()
                raise
            self._session = session
        return self._session

    def _full(self, name: str) -> str:
        return self.session.name(name)

    def _refused(self, reply: Reply, what: str, name: str) -> MpxError:
        return reply_error(reply, f"{self.session.peer} cannot {what} {name}", self._refusal)

    def check_name(self, name: str) -> None:
        """See Endpoint."""
        self._full(name)

    def can_mode_e(self) -> bool:
        """See Endpoint."""
        return self.session.call(command("MODE", "E")).is_ok

    def can_restart(self) -> bool:
        """See Endpoint."""
        return "REST" in self.session.features

    def measure_rtt(self) -> Rtt | None:
        """See Endpoint."""
        return Rtt(self.session.measure_rtt(), self.session.socket_rtt_s)

    # --- describing ----------------------------------------------------------------------------------

    def stat(self, name: str, *, follow: bool = True) -> FileInfo | None:
        """See Endpoint."""
        full = self._full(name)
        if "MLST" not in self.session.features:
            return self._stat_without_mlst(full)
        return self._described(self.session.call(command("MLST", full)), name, follow=follow)

    def stats(self, names: Sequence[str]) -> list[FileInfo | MpxError | None]:
        """See Endpoint. The questions go out together."""
        if "MLST" not in self.session.features:
            return [self.stat(name) for name in names]
        replies = self.session.pipeline([command("MLST", self._full(name)) for name in names])
        found: list[FileInfo | MpxError | None] = []
        for reply, name in zip(replies, names, strict=True):
            try:
                found.append(self._described(reply, name, follow=True))
            except self._refusal as error:
                found.append(error)
        return found

    def _described(self, reply: Reply, name: str, *, follow: bool) -> FileInfo | None:
        if not reply.is_ok:
            if is_missing(reply) or any(words in reply.text.lower() for words in _LEADS_NOWHERE):
                return None
            raise self._refused(reply, "describe", name)
        for line in reply.lines[1:-1]:
            with contextlib.suppress(ValueError):
                info = entry_info(wire.parse_facts(line), follow=follow)
                if info.kind is Kind.LINK and follow:
                    return self._follow(self._full(name), info)
                return info
        raise self._refused(reply, "describe", name)

    def _follow(self, full: str, info: FileInfo) -> FileInfo | None:
        """Describe what a link points to, where the server describes the link itself."""
        for _ in range(40):
            if info.kind is not Kind.LINK:
                return info
            if not info.link_target:
                return self._stat_without_mlst(full)
            full = posixpath.normpath(posixpath.join(posixpath.dirname(full), info.link_target))
            found = self.stat(full, follow=False)
            if found is None:
                return None
            info = found
        return None

    def _stat_without_mlst(self, full: str) -> FileInfo | None:
        """Ask SIZE and MDTM; what has no size but can be entered is a folder."""
        size, modified, enter = self.session.pipeline(
            [command("SIZE", full), command("MDTM", full), command("CWD", full)]
        )
        if enter.is_ok:
            self.session.call(command("CWD", self.session.home))
            return FileInfo(Kind.FOLDER, 0, parse_time(modified.text) if modified.code == 213 else None)
        if size.code != 213 or not size.text.strip().isdigit():
            return None
        modified_s = parse_time(modified.text) if modified.code == 213 else None
        return FileInfo(Kind.FILE, int(size.text), modified_s)

    def entries(self, name: str) -> Iterator[tuple[str, FileInfo]]:
        """See Endpoint. Over MODE S and a passive data connection, which every server has."""
        full = self._full(name)
        session = self.session
        if "MLST" not in session.features and "MLSD" not in session.features:
            raise self._refusal(f"{session.peer} has no MLSD, so mpx cannot list {name}; copy files by name")
        count, promised, only = 0, 0, None
        for line in read_lines(session, command("MLSD", full), lambda r: self._refused(r, "list", name)):
            with contextlib.suppress(ValueError):
                entry = wire.parse_facts(line)
                count += 1
                base = entry.name.rstrip("/").rsplit("/", 1)[-1]
                if base in (".", "..", "") or entry.facts.get("type", "").lower() in ("cdir", "pdir"):
                    promised = max(promised, int(entry.facts.get("x.count", "0")))
                    continue
                only = base if count == 1 else None
                yield base, entry_info(entry)
        if only is not None and posixpath.basename(full) == only:
            found = self.stat(full)
            if found is None or found.kind is not Kind.FOLDER:  # MLSD of a file lists that file
                raise self._refusal(f"{session.peer} cannot list {name}: it is not a folder")
        if promised > count:
            yield from self._links_to_nowhere(full)

    def _links_to_nowhere(self, full: str) -> Iterator[tuple[str, FileInfo]]:
        """Yield what a Globus server counts but does not list: MLSD leaves such links out, MLSR does not.

        MLSR goes through the whole tree, the folder itself first; so it has a session that can be cut.
        """
        links: dict[str, FileInfo] = {}
        with Session(self.location, self._options) as other:
            other.login()
            lines = read_lines(other, command("MLSR", full), lambda r: self._refused(r, "list", full))
            for line in lines:
                with contextlib.suppress(ValueError):
                    entry = wire.parse_facts(line)
                    if "/" in entry.name:
                        break
                    if entry_info(entry).kind is Kind.LINK:
                        links[entry.name] = entry_info(entry)
        found = self.stats([posixpath.join(full, name) for name in links])
        for (name, info), there in zip(links.items(), found, strict=True):
            if there is None:
                yield name, info

    # --- changing ------------------------------------------------------------------------------------

    def make_folder(self, name: str, *, replace_link: bool = False) -> None:  # noqa: ARG002
        """See Endpoint."""
        full = self._full(name)
        reply = self.session.call(command("MKD", full))
        if reply.is_ok:
            return
        found = self.stat(full)
        if found and found.kind is Kind.FOLDER:
            return
        parent = posixpath.dirname(full.rstrip("/"))
        if found is None and parent not in ("", "/", full) and self.stat(parent) is None:
            self.make_folder(parent)
            reply = self.session.call(command("MKD", full))
            if reply.is_ok:
                return
        raise self._refused(reply, "make the folder", name)

    def make_link(self, name: str, target: str) -> str:
        """See Endpoint. A Globus server makes absolute links, and only to what exists."""
        full = self._full(name)
        aside = partial_name(full, "link")
        absolute = self._full(posixpath.normpath(posixpath.join(posixpath.dirname(full), target)))
        replies = self.session.pipeline(
            [
                command("DELE", aside),
                command("SITE", "SYMLINKFROM", absolute),
                command("SITE", "SYMLINKTO", aside),
                command("RNFR", aside),
                command("RNTO", full),
            ]
        )
        for reply in replies[1:]:
            if not reply.is_ok:
                self.session.call(command("DELE", aside))
                raise self._refused(reply, f"make the symbolic link to {target}", name)
        return absolute

    def remove(self, name: str) -> None:
        """See Endpoint."""
        reply = self.session.call(command("DELE", self._full(name)))
        if not reply.is_ok and not is_missing(reply) and self.stat(name, follow=False):
            raise self._refused(reply, "remove", name)

    def commit(self, files: Sequence[Commit]) -> list[Exception | None]:
        """See Endpoint. A server cannot be asked to sync; names and times go in one pipelined group."""
        commands: list[bytes] = []
        for file in files:
            partial = self._full(file.partial)
            commands.append(self._time_command(partial, file.modified_s))
            commands.append(self._mode_command(partial, file.mode))
            commands += [command("RNFR", partial), command("RNTO", self._full(file.final))]
        replies = self.session.pipeline(commands)
        results: list[Exception | None] = []
        for i, file in enumerate(files):
            rename = replies[4 * i + 3]
            source = replies[4 * i + 2]
            refused = rename if source.is_ok else source
            results.append(None if rename.is_ok else self._refused(refused, "rename to", file.final))
        return results

    def _time_command(self, full: str, modified_s: float | None) -> bytes:
        if modified_s is None or "MFMT" not in self.session.features:
            return command("NOOP")
        try:
            when = datetime.fromtimestamp(modified_s, UTC).strftime("%Y%m%d%H%M%S")
        except (ValueError, OverflowError, OSError):  # MFMT has four digits for the year
            return command("NOOP")
        return command("MFMT", when, full)

    @staticmethod
    def _mode_command(full: str, mode: int | None) -> bytes:
        return command("NOOP") if mode is None else command("SITE", "CHMOD", f"{mode & 0o777:04o}", full)

    def set_times(self, name: str, modified_s: float | None, mode: int | None) -> None:
        """See Endpoint."""
        full = self._full(name)
        self.session.pipeline([self._mode_command(full, mode), self._time_command(full, modified_s)])

    # --- checking ------------------------------------------------------------------------------------

    def can_checksum(self, algorithm: str) -> bool:
        """See Endpoint."""
        offered = re.findall(r"[A-Z0-9-]+", self.session.features.get("CKSM", "").upper())
        return algorithm.upper() in offered

    def checksums(
        self, algorithm: str, parts: Sequence[Part], stop: Callable[[], bool]
    ) -> list[str | Exception]:
        """See Endpoint. All CKSM go out ahead; each may take as long as its progress markers keep coming."""
        sums: list[str | Exception] = []
        self.session.call(command("OPTS", "CKSM", "Markers=1;"))
        for i in range(0, len(parts), PIPELINE):
            group = parts[i : i + PIPELINE]
            self.session.send(
                *(
                    command("CKSM", algorithm.upper(), p.start, p.end - p.start, self._full(p.name))
                    for p in group
                )
            )
            for part in group:
                reply = self.session.final_reply()
                found = re.fullmatch(r"\s*([0-9a-fA-F]+)\s*", reply.text)
                if reply.code == 213 and found:
                    sums.append(found.group(1).lower())
                else:
                    sums.append(self._refused(reply, "checksum", part.name))
                if stop():
                    raise Interrupted
        return sums

    def free_bytes(self, name: str) -> int | None:  # noqa: ARG002  GridFTP has no question for it
        """See Endpoint."""
        return None

    def close(self) -> None:
        """See Endpoint."""
        if self._session:
            self._session.close()
            self._session = None
