"""The tools that are compared, by name, and the command line of each."""

import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType
from urllib.parse import urlsplit

from mpx.choices import POLICIES

FIXED = "fixed-"
PAPER = "paper"
PAPER_LONG = "paper-10s"
PLAIN = "plain"  # TCP streams of the lab's own, as the kernel sends them: plain, plain-bbr, plain-cubic-4
UDT = "udt"  # a stream of libudt
IDLE = "mpx-idle"  # sends next to nothing, to measure what is beside it alone
OPS = "ops"  # after CHOOSING: probes as long as OPS does, asks nearest neighbours, chooses, and then sends
OPS_PROBES = ("--probe-first", "10s", "--classifier", "knn-dtw")
CHOOSING = "mpx-"  # a policy or a congestion control, and perhaps how many streams: mpx-fair, mpx-bbr-1
SHARE = "share-"  # mpx with --share N
DOWN = "-down"  # after the name of a tool: it downloads
TOOLS = (  # parts in brackets are optional
    "auto",
    PAPER,
    PAPER_LONG,
    f"{PLAIN}[-CONTROL[-N]]",
    UDT,
    f"{CHOOSING}POLICY[-N]",
    f"{CHOOSING}CONTROL[-N]",
    f"{CHOOSING}{OPS}[-N]",
    f"{SHARE}N",
    "guc",
    "guc-pN",
    "fixed-N",
    "curl",
    "aria2-down",
    "lftp-down",
    "rclone-down",
)
AT_ONCE = 16  # connections of tools that fetch a file over several
NO_PASSWORD = "-AAAAAAAAAAAAAAAAAAAAA"  # an empty one, as rclone wants it written
_MPX = ("auto", PAPER, PAPER_LONG, FIXED, CHOOSING, SHARE)


def fixed(streams: int) -> str:
    """Return the name of mpx with so many streams."""
    return f"{FIXED}{streams}"


def plain_spec(tool: str) -> str | None:
    """Return the generator that a plain tool or UDT is, None if it is another tool."""
    if tool == UDT:
        return UDT
    name, _, rest = tool.partition("-")
    congestion, _, streams = rest.partition("-")
    if name != PLAIN:
        return None
    return f"tcp(congestion={congestion}, streams={streams or 1})" if congestion else "tcp"


def is_mpx(tool: str) -> bool:
    """Whether it is mpx, which writes a report."""
    return tool.startswith(_MPX)


def started_file(number: int) -> str:
    """Return the file of a run that says when the tool of a transfer was started."""
    return f"tool-{number}.json"


def command_of(tool: str, file: str, url: str, report: str) -> list[str]:
    """Return the command that copies a file up to a URL, or down from it; without a checksum.

    mpx writes its report. Raises ValueError for a tool of another name.
    """
    name = tool.removesuffix(DOWN)
    ends = (url, file) if tool.endswith(DOWN) else (file, url)
    if name == "guc" or name.startswith("guc-p"):
        streams = name.removeprefix("guc").replace("-p", "-p ").split()
        return ["globus-url-copy", *streams, *(f"file://{end}" if end == file else end for end in ends)]
    if tool in FETCHING:
        return FETCHING[tool](file, url)
    if tool == "curl":
        return ["curl", "--silent", "--show-error", "--upload-file", file, _from_root(url)]
    mpx = [sys.executable, "-m", "mpx", "copy", "-q", "--checksum", "none", "--report", report]
    if not name.startswith((CHOOSING, SHARE)):
        mpx += ["--congestion", "kernel"]  # what the link's routes say
    if name == IDLE:
        mpx += ["--streams", "1", "--congestion", "kernel", "--rate", "20kbit/s"]
    elif name.startswith(SHARE):
        mpx += ["--share", name.removeprefix(SHARE)]
    elif name.startswith(CHOOSING):
        choice, _, streams = name.removeprefix(CHOOSING).partition("-")
        if choice == OPS:
            mpx += OPS_PROBES
        else:
            mpx += ["--policy" if choice in POLICIES else "--congestion", choice]
        mpx += ["--streams", streams] if streams else []
    elif name.startswith(FIXED):
        mpx += ["--streams", name.removeprefix(FIXED)]
    elif name == PAPER:
        mpx += ["--tuner", "paper"]
    elif name == PAPER_LONG:
        mpx += ["--tuner", "paper", "--chunk-time", "10s"]
    elif name != "auto":
        raise ValueError(f"{tool!r} is none of {', '.join(TOOLS)}")
    return [*mpx, *ends]


def _curl(file: str, url: str) -> list[str]:
    return ["curl", "--silent", "--show-error", "--output", file, _from_root(url)]


def _aria2(file: str, url: str) -> list[str]:
    folder, _, target = file.rpartition("/")
    pieces = [f"--max-connection-per-server={AT_ONCE}", f"--split={AT_ONCE}", "--min-split-size=1M"]
    target_is = [f"--dir={folder}", f"--out={target}"]
    return ["aria2c", "--quiet", "--file-allocation=none", *pieces, *target_is, _from_root(url)]


def _lftp(file: str, url: str) -> list[str]:
    return ["lftp", "-c", f"set cmd:fail-exit yes; pget -n {AT_ONCE} {_from_root(url)} -o {file}"]


def _rclone(file: str, url: str) -> list[str]:
    server = urlsplit(url)
    login = [f"--ftp-host={server.hostname}", f"--ftp-port={server.port or 21}", "--ftp-user=anonymous"]
    login.append("--ftp-disable-utf8")  # a Globus server knows no OPTS UTF8, and rclone ends there
    pieces = [f"--multi-thread-streams={AT_ONCE}", "--multi-thread-cutoff=1M", f"--ftp-pass={NO_PASSWORD}"]
    return ["rclone", "--config=", "--quiet", "copyto", *login, *pieces, f":ftp:{server.path}", file]


FETCHING: Mapping[str, Callable[[str, str], list[str]]] = MappingProxyType(
    {
        f"curl{DOWN}": _curl,
        f"aria2{DOWN}": _aria2,
        f"lftp{DOWN}": _lftp,
        f"rclone{DOWN}": _rclone,
    }
)


def _from_root(url: str) -> str:
    """Return a URL for FTP clients that take a path for one from the login folder on (RFC 1738, 3.2.2)."""
    server, _, path = url.removeprefix("ftp://").partition("/")
    return f"ftp://{server}/%2F{path}"
