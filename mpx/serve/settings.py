"""What commands of a session set for the commands after them: TYPE, MODE, OPTS, TREV, REST, ..."""

from dataclasses import dataclass, field

from mpx import choices
from mpx.engine.ranges import RangeSet
from mpx.net import congestion_control, mptcp
from mpx.serve import arguments
from mpx.serve.buffers import MOST_CONNECTIONS
from mpx.serve.listing import FACTS
from mpx.serve.replies import RefusalReply

_INTERVAL_DIGITS = 5  # of seconds, and of a number of connections


@dataclass(slots=True)
class Settings:
    """One session's settings, with the defaults of a new session."""

    blocks: bool = False  # MODE E rather than MODE S
    streams: int = 1  # that we open for a retrieve in MODE E
    over_mptcp: bool = False  # whether these are of Multipath TCP
    congestion: str = ""  # congestion control of these; empty: the kernel's choice
    congestions: tuple[str, ...] | None = None  # it is one of these; None: of what all users may use, ...
    kernels: str = ""  # ... or the kernel would send with anyway
    performance_s: float = 1.0  # interval of 112 markers while storing; 0 is none
    restart_s: float = 1.0  # interval of 111 markers while storing; 0 is none
    retrieve_marker_s: float = 0.0  # interval of 112 markers while retrieving
    checksum_marker_s: float = 0.0  # interval of 113 markers
    facts: tuple[str, ...] = FACTS
    restart: RangeSet = field(default_factory=RangeSet)  # what the next transfer can leave out
    rename_from: str | None = None

    def usable_congestion(self) -> tuple[str, ...]:
        """Return with what this process can send, of what the client may have it send with."""
        may = self.congestions
        if may is None:
            may = (*congestion_control.permitted_congestion(), self.kernels)
        return tuple(name for name in congestion_control.usable_congestion() if name in may)

    def take_restart(self) -> RangeSet:
        """Return what REST said; it holds for one transfer only."""
        restart, self.restart = self.restart, RangeSet()
        return restart


def set_restart(settings: Settings, argument: str) -> None:
    """REST 100, or REST 0-100,200-300: what is already there. Raises RefusalReply."""
    settings.restart = RangeSet(arguments.ranges(argument))


def set_trigger(settings: Settings, argument: str) -> None:
    """TREV PERF seconds, TREV RESTART seconds: marker intervals; 0 is none. Raises RefusalReply."""
    event, _, text = argument.strip().upper().partition(" ")
    seconds = arguments.interval_s(text)
    if event not in ("PERF", "RESTART") or seconds is None:
        raise RefusalReply(501, "TREV takes PERF or RESTART and seconds, as 5 or 0.5.")
    if event == "PERF":
        settings.performance_s = seconds
    else:
        settings.restart_s = seconds


def set_options(settings: Settings, argument: str) -> str:
    """OPTS command options; returns what was set, in words. Raises RefusalReply."""
    verb, _, options = argument.strip().partition(" ")
    verb = verb.upper()
    if verb == "MLST":
        wanted = {name.lower() for name in options.split(";")}
        settings.facts = tuple(name for name in FACTS if name.lower() in wanted)
        return "MLST OPTS " + "".join(f"{name};" for name in settings.facts)
    if verb == "UTF8" and options.strip().upper() in ("", "ON"):
        return "Names are UTF-8."
    pairs = arguments.options(options)
    if verb == "RETR" and pairs:
        return _set_retrieve(settings, pairs)
    if verb == "CKSM" and pairs:
        seconds = arguments.number(pairs.get("markers", ""), _INTERVAL_DIGITS)
        if seconds is not None:
            settings.checksum_marker_s = float(seconds)
            return "Checksum markers set."
    raise RefusalReply(501, f"No such option: {argument[:80]!a}")


def _set_retrieve(settings: Settings, pairs: dict[str, str]) -> str:
    # StripeLayout and BlockSize concern striped servers, and clients send them to all.
    known = ("Parallelism", "Markers", "Congestion", "Transport", "StripeLayout", "BlockSize")
    if set(pairs) - {name.lower() for name in known}:
        raise RefusalReply(501, f"Options of RETR are {', '.join(known)}.")
    numbers = {}
    for name in ("parallelism", "markers"):
        if name in pairs:
            number = arguments.number(pairs[name].partition(",")[0], _INTERVAL_DIGITS)
            if number is None:
                raise RefusalReply(501, "Options of RETR are whole numbers.")
            numbers[name] = number
    if "congestion" in pairs:
        usable = settings.usable_congestion()
        if pairs["congestion"] not in usable:
            raise RefusalReply(504, f"Congestion is one of {', '.join(usable)}.")
        settings.congestion = pairs["congestion"]
    if "transport" in pairs:
        if pairs["transport"] not in ("tcp", choices.TRANSPORT) or mptcp.why_not():
            raise RefusalReply(504, f"Transport is tcp{'' if mptcp.why_not() else ' or mptcp'}.")
        settings.over_mptcp = pairs["transport"] == choices.TRANSPORT
    if "parallelism" in numbers:
        settings.streams = min(max(1, numbers["parallelism"]), MOST_CONNECTIONS)
    if "markers" in numbers:
        settings.retrieve_marker_s = float(numbers["markers"])
    return "Options of RETR set."
