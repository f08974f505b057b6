"""What a user may say of connections with GSI, and what a copy learns of its servers."""

from dataclasses import dataclass, field

from mpx.report import OnNote, no_note

Place = tuple[str, int]  # host and port


@dataclass(frozen=True, slots=True)
class GsiOptions:
    """See the options of the same names in mpx/options.py."""

    encrypt: bool = False  # file data, too
    dcau: bool = True  # data connections are authenticated
    delegate: bool = False  # give the server a proxy of ours
    server_subject: str | None = None  # the name of the server's certificate, in place of its host
    data_certificate: str = ""  # PEM, with key, of data connections between two servers; empty: made for each
    ca: str | None = None  # the folder of CAs to trust, in place of the one that grid tools use


@dataclass(slots=True)
class GsiMemory:
    """What the sessions of one copy have learnt of servers; each set only grows. `note`: for the report."""

    note: OnNote = no_note
    without_dcsc: set[Place] = field(default_factory=set)  # take no certificate for data connections
    step_by_step: set[Place] = field(default_factory=set)  # lose what comes together
    clear_listings: set[Place] = field(default_factory=set)  # encrypt no data connections
