"""The options of a copy: each one's name, default, unit and help, in one place.

The command line, the Python API and the documentation are derived from CopyOptions.
"""

from dataclasses import dataclass, field, fields, replace
from typing import Any

from mpx.choices import (
    ACTIVELY,
    ALGORITHMS,
    AUTO,
    CLASSIFIERS,
    FAIR,
    KNN_DTW,
    MOST_PATHS,
    NONE,
    PAPER,
    PASSIVELY,
    POLICIES,
    PROBE_MODES,
    SCAVENGER,
    THIRD_PARTY,
    TRANSPORT,
    TREES,
    parse_ports,
)
from mpx.errors import UsageError
from mpx.hosts import parse_hosts, parse_token_files
from mpx.option_values import check_range, check_type

TCP = "tcp"
LEAST_BURSTS_S = 10.0  # of which bursts fill a window of recognition


def _option(default: Any, kind: str, text: str, **more: Any) -> Any:
    """Declare an option: its kind tells the command line how to read a value with its unit."""
    return field(default=default, metadata={"kind": kind, "help": text, **more})


OF_GSI = ("encrypt", "dcau", "delegate", "server_subject")
OF_SSH = ("remote_mpx", "bootstrap", "bootstrap_once", "remote_python", "data_ports")
OF_WEB = ("token_files", "send_token_to")
OF_WEB_TLS = ("certificate", "key")
OF_S3 = ("profile", "region", "endpoint_url", "sign_request", "request_payer")
OF_GLOBUS = ("globus_local",)
OF_CAS = ("ca",)  # where servers are known by who has issued their certificates


@dataclass(frozen=True, slots=True)
class CopyOptions:
    """Options of a copy. The defaults fit nearly every copy."""

    recursive: bool = _option(False, "flag", "copy folders with all that is in them", short="-r")
    overwrite: str = _option(
        "different",
        "choice",
        "replace existing files: those that differ (in size, or by more than 1 s in time), all, or none",
        choices=("different", "always", "never"),
    )
    links: str = _option(
        "follow",
        "choice",
        "copy what symbolic links point to, keep them as links, or skip them and name each",
        choices=("follow", "keep", "skip"),
    )
    dry_run: bool = _option(False, "flag", "say what would be copied, and copy nothing")
    files: int | None = _option(None, "count", "maximum number of files in transfer, or auto", minimum=1)
    streams: int | None = _option(None, "count", "data streams in all: a fixed number, or auto", minimum=1)
    max_streams: int = _option(256, "number", "never use more streams than this", minimum=1, maximum=10_000)
    max_sessions: int = _option(
        8,
        "number",
        "maximum number of sessions for data, and as many again for verifying (two more list and measure)",
        minimum=1,
    )
    tuner: str = _option(
        "auto",
        "choice",
        "how the number of streams is found: by mpx's own method, or GridFTP-APT as published",
        choices=(AUTO, PAPER),
    )
    initial_streams: int | None = _option(
        None,
        "count",
        "streams the tuner begins with, or auto: 4, or as --share says; more in copies of up to 2 MiB",
        minimum=1,
    )
    growth: float = _option(
        2.0,
        "factor",
        "factor by which --tuner paper raises the number of streams while searching",
        minimum=1.01,
        maximum=100,
    )
    chunk_time_s: float = _option(
        3.0, "duration", "how long --tuner paper measures one number of streams", minimum=0.01
    )
    congestion: str = _option(
        AUTO,
        "text",
        "congestion control: auto (chosen from the background traffic), kernel (its default), or a name",
    )
    share: int = _option(
        4,
        "number",
        "on a full path keep so many streams, to take as much from others as they do (--policy fair)",
        minimum=1,
        maximum=10_000,
    )
    policy: str = _option(
        FAIR,
        "choice",
        "goal of --congestion auto: a fair share, speed at the expense of others, or yielding to all others",
        choices=POLICIES,
    )
    probe_first_s: float | None = _option(
        None,
        "duration",
        "before data move, probe each path for so long (5s at least), and begin as the background asks for",
        minimum=5.0,
        maximum=86_400.0,
    )
    probe_mode: str = _option(
        PASSIVELY,
        "choice",
        "how --probe-first probes: by probes alone, or beside bursts, which show the rate and disturb others",
        choices=PROBE_MODES,
    )
    classifier: str = _option(
        TREES,
        "choice",
        "what reads the background of --probe-first: trees over features, or nearest neighbours as in OPS",
        choices=CLASSIFIERS,
    )
    transport: str = _option(
        TCP,
        "choice",
        "transport of data connections: TCP, or Multipath TCP if both ends support it",
        choices=(TCP, TRANSPORT),
    )
    rate_bps: float | None = _option(None, "rate", "maximum rate of all streams together, as 800Mbit/s")
    bandwidth_bps: float | None = _option(
        None,
        "rate",
        "what the path can carry, as 10Gbit/s: begin with as many streams as their windows then need",
    )
    history: bool = _option(True, "flag", "use what earlier copies found of the path, and remember this one")
    block_size_bytes: int | None = _option(
        None,
        "size",
        "size of a block, as 4MiB, 4KiB to 2GiB (unset: what a stream sends in about 100 ms)",
        minimum=4096,
        maximum=2 * 1024**3,
    )
    checksum: str = _option(
        AUTO,
        "choice",
        "checksum for end-to-end verification; auto: the best the server supports for the file size",
        choices=(AUTO, *ALGORITHMS, NONE),
    )
    resume: bool = _option(True, "flag", "continue an interrupted copy", name="continue")
    in_place: bool = _option(
        False, "flag", "upload directly to the final name, for servers that do not permit renaming"
    )
    partial_prefix: str = _option(
        ".", "text", "prefix of names of unfinished files, for servers that prohibit a leading dot"
    )
    connect_timeout_s: float = _option(
        30.0, "duration", "time limit for opening a connection, up to the server's greeting"
    )
    timeout_s: float = _option(60.0, "duration", "time limit for a reply, and for any progress")
    retries: int = _option(
        10,
        "number",
        "attempts to reopen a lost session without progress, at growing intervals (10: two minutes)",
        minimum=0,
    )
    port_range: str | None = _option(None, "text", "local ports to listen on for data, as 40000-41000")
    source_ports: str | None = _option(None, "text", "local ports of outgoing streams, as 40000-41000")
    data_address: str | None = _option(
        None, "text", "local address of data connections (unset: that of the session)"
    )
    data_address_from_server: bool = _option(
        False,
        "flag",
        "use the data address the server announces, as striped servers need (unset: that of the session)",
    )
    third_party: str = _option(
        AUTO,
        "choice",
        "between two servers: send data straight from one to the other if possible, never, or only so; "
        "of web servers also how: only if the destination reads (pull), or the source writes (push)",
        choices=THIRD_PARTY,
    )
    remote_mpx: str | None = _option(
        None, "text", "with ssh: the mpx at the other end (unset: the one found there)"
    )
    bootstrap: bool = _option(
        False, "flag", "with ssh: send the server there, for Python 3.9 or later, and keep it in a cache"
    )
    bootstrap_once: bool = _option(False, "flag", "as --bootstrap, and leave nothing there")
    remote_python: str | None = _option(
        None, "text", "with --bootstrap: the Python at the other end (unset: python3)"
    )
    data_ports: str | None = _option(
        None, "text", "with ssh: ports of the other end for direct connections, as 50000-51000"
    )
    encrypt: bool = _option(
        False,
        "flag",
        "with gsiftp, globus: encrypt file data too (unset: gsiftp authenticates who sends, that is all)",
    )
    dcau: bool = _option(True, "flag", "with gsiftp: authenticate data connections")
    delegate: bool = _option(
        False, "flag", "with gsiftp: give the server a proxy of yours, with which it acts in your name"
    )
    server_subject: str | None = _option(
        None, "text", "with gsiftp: name in the server's certificate, as /O=Grid/CN=dtn (unset: its host)"
    )
    ca: str | None = _option(
        None,
        "text",
        "with https, davs, s3, gsiftp, root, roots, globus, gfal2: CAs in place of the usual ones",
        metavar="FILE|FOLDER",
    )
    certificate: str | None = _option(
        None, "text", "with https, davs, root, roots, gfal2: certificate (PEM)", name="cert", metavar="FILE"
    )
    key: str | None = _option(
        None, "text", "with --cert: the key of that certificate (unset: in the same file)", metavar="FILE"
    )
    token_files: tuple[str, ...] = _option(
        (),
        "texts",
        "with http, https, dav, davs, root, roots, gfal2: file with a bearer token, for HOST[:PORT] or all; "
        "may be repeated",
        name="token_file",
        metavar="[HOST=]FILE",
    )
    send_token_to: tuple[str, ...] = _option(
        (),
        "texts",
        "with http, https, dav, davs: HOST[:PORT] or *.DOMAIN to which a redirect may take the token; "
        "may be repeated",
        metavar="HOST",
    )
    profile: str | None = _option(
        None, "text", "with s3: profile of ~/.aws to use (unset: AWS_PROFILE, else default)", metavar="NAME"
    )
    region: str | None = _option(
        None, "text", "with s3: region of the bucket (unset: as AWS tools find it)", metavar="NAME"
    )
    endpoint_url: str | None = _option(
        None,
        "text",
        "with s3: URL of a server that is not AWS, as https://s3.example.org (unset: as AWS tools find it)",
        metavar="URL",
    )
    sign_request: bool = _option(True, "flag", "with s3: sign requests; public buckets need no credentials")
    request_payer: str | None = _option(
        None,
        "choice",
        "with s3: who pays for requests and data, where a bucket makes requesters pay",
        choices=("requester",),
    )
    globus_local: str | None = _option(
        None,
        "text",
        "with globus: collection that has the files of this host, all or those in FOLDER, as its own",
        metavar="COLLECTION[=FOLDER]",
    )
    via: str | None = _option(
        None, "choice", "have gfal2 copy whole files, as for srm:// anyway", choices=("gfal2",)
    )
    ipv4: bool = _option(False, "flag", "use IPv4 only", short="-4", name="ipv4")
    ipv6: bool = _option(False, "flag", "use IPv6 only", short="-6", name="ipv6")
    controller: str | None = _option(
        None, "text", "REST URL of a controller that assigns paths, as http://127.0.0.1:6680"
    )
    paths: int | None = _option(
        None, "count", "maximum number of paths from the controller, or auto: as many as help", minimum=1
    )
    require_controller: bool = _option(False, "flag", "fail if the controller assigns no paths")
    explicit: frozenset[str] = field(default=frozenset(), repr=False)  # what was given by hand

    def __post_init__(self) -> None:
        """Raise UsageError for a value that is out of its range."""
        for option in fields(self):
            value, about = getattr(self, option.name), option.metadata
            shown = flag_of(option.name)
            check_type(shown, value, about.get("kind"), may_lack=option.default is None)
            if "choices" in about and value not in (*about["choices"], option.default):
                raise UsageError(f"{shown} is one of {', '.join(about['choices'])}, not {value!r}")
            if value is not None:
                check_range(shown, value, about)
        of_ports = dict.fromkeys(("port_range", "source_ports", "data_ports"), parse_ports)
        of_hosts = {"token_files": parse_token_files, "send_token_to": parse_hosts}
        for name, parse in {**of_ports, **of_hosts}.items():
            if (text := getattr(self, name)) is not None:
                try:
                    parse(text)
                except UsageError as error:
                    raise UsageError(f"{flag_of(name)}: {error}") from None
        if self.key is not None and self.certificate is None:
            raise UsageError("--key is the key of a certificate; give --cert too")
        if self.remote_mpx is not None and (self.bootstrap or self.bootstrap_once):
            raise UsageError("--remote-mpx names what --bootstrap would send; leave one out")
        if self.remote_python is not None and not (self.bootstrap or self.bootstrap_once):
            raise UsageError("--remote-python is for what --bootstrap sends; give that too")
        if self.encrypt and not self.dcau:
            raise UsageError("--encrypt needs data connections that are authenticated; leave --no-dcau out")
        if self.ipv4 and self.ipv6:
            raise UsageError("-4 and -6 exclude each other; give one of them")
        if self.streams is not None and self.streams > self.max_streams:
            raise UsageError(f"--streams {self.streams} is more than --max-streams {self.max_streams}")
        for name in ("initial_streams", "share"):
            count = getattr(self, name)
            if count is not None and count > self.max_streams and self.was_given(name):
                raise UsageError(f"{flag_of(name)} {count} is more than --max-streams {self.max_streams}")
        for name in ("tuner", "initial_streams", "share", "bandwidth_bps"):
            if self.streams is not None and self.was_given(name):
                raise UsageError(f"--streams {self.streams} fixes their number; leave {flag_of(name)} out")
        if self.bandwidth_bps is not None and self.initial_streams is not None:
            raise UsageError("--bandwidth and --initial-streams both say what to begin with; leave one out")
        if any(char in self.partial_prefix for char in "/\r\n\0") or len(self.partial_prefix) > 32:
            raise UsageError(f"--partial-prefix is the beginning of a name, not {self.partial_prefix!r}")
        if not self.congestion or self.congestion != self.congestion.lower():
            raise UsageError(f"--congestion is a name in small letters, as cubic, not {self.congestion!r}")
        for name, value in (("tuner", AUTO), ("policy", FAIR)):
            if getattr(self, name) != value and self.was_given("share"):
                given = f"{flag_of(name)} {getattr(self, name)}"
                raise UsageError(f"--share is not possible with {given}; leave it out")
        if self.controller is not None and self.transport == TRANSPORT:
            raise UsageError("--controller and --transport mptcp do not go together; leave one out")
        for name in ("paths", "require_controller"):
            if self.controller is None and self.was_given(name):
                raise UsageError(f"{flag_of(name)} is for paths of a controller; give --controller URL too")
        if self.paths is not None and self.paths > MOST_PATHS:
            raise UsageError(f"--paths {self.paths} is more than the {MOST_PATHS} that a path set may have")
        for name in ("classifier", "probe_mode"):
            if self.probe_first_s is None and self.was_given(name):
                raise UsageError(f"{flag_of(name)} is for --probe-first; give --probe-first 10s too")
        if self.probe_mode == ACTIVELY and (self.probe_first_s or LEAST_BURSTS_S) < LEAST_BURSTS_S:
            raise UsageError("--probe-mode active needs 10 s at least; give --probe-first 10s")
        if self.bandwidth_bps is not None and self.policy == SCAVENGER:
            raise UsageError("--policy scavenger keeps the few streams it begins with; leave --bandwidth out")
        if self.bandwidth_bps is not None and self.controller is not None:
            raise UsageError("--controller predicts the streams of each path; leave --bandwidth out")
        if (self.probe_mode, self.classifier) == (ACTIVELY, KNN_DTW):
            raise UsageError(f"--classifier {KNN_DTW} knows nothing of bursts; leave --probe-mode out")
        for name in ("growth", "chunk_time_s"):
            if self.tuner != PAPER and self.was_given(name):
                raise UsageError(f"{flag_of(name)} is for --tuner paper only; give that too, or leave it out")

    def with_tuner_auto(self) -> "CopyOptions":
        """Return the same with mpx's own tuner, where that of the paper cannot be used."""
        names = ("tuner", "growth", "chunk_time_s")
        defaults: Any = {name: _DEFAULTS[name] for name in names}
        return replace(self, **defaults, explicit=self.explicit - set(names))

    def of_speed(self) -> dict[str, Any]:
        """Return, by name, the options that decide how fast a copy is and how much it takes from others."""
        return {name: getattr(self, name) for name in _OF_SPEED}

    def was_given(self, name: str) -> bool:
        """Tell whether an option was given by hand, so that it must be applied or refused."""
        return name in self.explicit or getattr(self, name) != _DEFAULTS[name]


_OF_SPEED = (
    "streams",
    "max_streams",
    "initial_streams",
    "tuner",
    "share",
    "policy",
    "congestion",
    "transport",
    "rate_bps",
    "max_sessions",
    "probe_first_s",
    "probe_mode",
    "classifier",
    "bandwidth_bps",
    "history",
    "checksum",
)
_DEFAULTS = {option.name: option.default for option in fields(CopyOptions)}


def flag_of(name: str) -> str:
    """Return the flag of an option: `connect_timeout_s` is `--connect-timeout` (values carry units)."""
    about = {option.name: option.metadata for option in fields(CopyOptions)}[name]
    base: str = about.get("name", name)
    for unit in ("_bytes", "_bps", "_s"):
        base = base.removesuffix(unit)
    return "--" + base.replace("_", "-")
