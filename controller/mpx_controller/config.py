"""The configuration, as a TOML file; unknown keys are refused."""

import ipaddress
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails

from mpx.errors import UsageError
from mpx_controller.graph import Port
from mpx_controller.network.forwarding import Bands
from mpx_controller.path_sets.sets import Limits

LOCAL = "local"  # the owner of requests from the controller's own host; sees all path sets
LOOPBACK = "127.0.0.1"
OPENFLOW_PORT, API_PORT = 6653, 6680
LEAST_BPS, MOST_BPS, MOST_DELAY_S = 1.0, 1e15, 1e3  # of a link


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Listen(_Section):
    """An address to listen on; with a certificate, for TLS.

    `insecure` allows an address beyond loopback without authentication, to peers from `allow_from` (labs).
    """

    address: str = LOOPBACK
    port: Annotated[int, Field(ge=0, le=65535)]
    certificate: Path | None = None
    key: Path | None = None
    insecure: bool = False
    allow_from: list[str] = []

    @field_validator("allow_from")
    @classmethod
    def _are_networks(cls, some: list[str]) -> list[str]:
        return [str(ipaddress.ip_network(each)) for each in some]

    @field_validator("address")
    @classmethod
    def _is_address(cls, text: str) -> str:
        return str(ipaddress.ip_address(text))

    @property
    def is_loopback(self) -> bool:
        """Whether only this host reaches it."""
        return ipaddress.ip_address(self.address).is_loopback

    @model_validator(mode="after")
    def _both(self) -> "Listen":
        if (self.certificate is None) != (self.key is None):
            raise ValueError("a certificate needs its key, and a key its certificate")
        if self.insecure != bool(self.allow_from):
            raise ValueError(
                "insecure and allow_from need each other: allow_from lists the addresses that may connect"
            )
        return self


class OpenFlow(Listen):
    """For switches. `authority` signs their certificates; `switches`: the datapath ids that may connect."""

    port: Annotated[int, Field(ge=0, le=65535)] = OPENFLOW_PORT
    authority: Path | None = None
    switches: list[Annotated[int, Field(gt=0, lt=2**64)]] | None = None

    @model_validator(mode="after")
    def _is_guarded(self) -> "OpenFlow":
        if (self.authority is None) != (self.certificate is None):
            raise ValueError(
                "certificate, key and authority need each other: switches need a certificate of the authority"
            )
        if self.insecure and self.certificate:
            raise ValueError("insecure is for switches without TLS; leave it out, or the certificate")
        if not (self.is_loopback or self.insecure or self.certificate):
            raise ValueError(
                f"beyond loopback ({self.address}) it needs a certificate, its key and an authority; "
                "or insecure and allow_from, for labs"
            )
        return self


class Token(_Section):
    """Who may ask with a token from a file: for its own address, or for any of `networks`."""

    owner: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9._@-]+$")]
    file: Path
    networks: list[str] = []

    @field_validator("owner")
    @classmethod
    def _is_not_ours(cls, name: str) -> str:
        if name == LOCAL:
            raise ValueError(f"'{LOCAL}' is reserved for callers on the controller's host; choose another")
        return name

    @field_validator("networks")
    @classmethod
    def _are_networks(cls, some: list[str]) -> list[str]:
        return [str(ipaddress.ip_network(each)) for each in some]


class Api(Listen):
    """Where REST and XML-RPC listen."""

    port: Annotated[int, Field(ge=0, le=65535)] = API_PORT
    tokens: list[Token] = []
    requests_per_s: Annotated[float, Field(gt=0, le=1e6)] = 200.0  # of one caller

    @model_validator(mode="after")
    def _is_guarded(self) -> "Api":
        if not (self.is_loopback or self.insecure or (self.certificate and self.tokens)):
            raise ValueError(
                f"beyond loopback ({self.address}) it needs a certificate, its key and tokens; "
                "or insecure and allow_from, for labs"
            )
        return self


class Forwarding(_Section):
    """`on = false` beside another controller. Entries are in `table` and the next, at 200 priorities."""

    on: bool = True
    table: Annotated[int, Field(ge=0, le=252)] = 0
    priority: Annotated[int, Field(ge=1, le=65_000)] = 40_000


class PathSetLimits(_Section):
    """What one owner may have, and for how long without a sign of use."""

    lease_s: Annotated[float, Field(ge=1, le=86_400)] = 60.0
    streams: Annotated[int, Field(ge=1, le=65_535)] = 256
    sets: Annotated[int, Field(ge=1, le=100_000)] = 64
    selection: Literal["widest-apart", "breadth-first", "least-shared"] = "widest-apart"


class Mptcp(_Section):
    """Whether the subflows of Multipath TCP are spread over paths, chosen as those of path sets are."""

    on: bool = True


class Links(_Section):
    """What links carry: `capacities` is a file as labs write it; others have `default_bps`."""

    capacities: Path | None = None
    default_bps: Annotated[float, Field(ge=1e3, le=1e13)] = 1e9


class Config(_Section):
    """The whole configuration."""

    openflow: OpenFlow = OpenFlow()
    api: Api = Api()
    forwarding: Forwarding = Forwarding()
    path_sets: PathSetLimits = PathSetLimits()
    mptcp: Mptcp = Mptcp()
    links: Links = Links()
    state: Path | None = None  # a file that path sets and hosts are kept in over a restart

    @model_validator(mode="after")
    def _can_be(self) -> "Config":
        if self.mptcp.on and "on" in self.mptcp.model_fields_set and not self.forwarding.on:
            raise ValueError("mptcp.on needs forwarding.on: without it switches send no copies of SYNs")
        return self

    @property
    def spreads_mptcp(self) -> bool:
        """Whether subflows of Multipath TCP are spread: not beside another controller."""
        return self.mptcp.on and self.forwarding.on

    @property
    def bands(self) -> Bands:
        """Where our entries are."""
        return Bands(self.forwarding.table, self.forwarding.priority)

    @property
    def limits(self) -> Limits:
        """What one owner may have."""
        settings = self.path_sets
        return Limits(settings.lease_s, settings.streams, settings.sets)


def read_config(file: Path) -> dict[str, Any]:
    """Read a file, for `checked_config`; raises UsageError."""
    try:
        return tomllib.loads(file.read_text())
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:  # of TOML, UTF-8, or of a number with too many digits
        raise UsageError(f"{file} is not TOML: {error}") from None


def checked_config(settings: Mapping[str, object], where: str) -> Config:
    """Return the configuration of a mapping; raises UsageError, which names what is wrong."""
    try:
        return Config.model_validate(settings)
    except ValidationError as error:
        wrong = "; ".join(_wrong(each) for each in error.errors())
        raise UsageError(f"{where} cannot be used: {wrong}") from None


def _wrong(found: ErrorDetails) -> str:
    """Return what is wrong, and with which key."""
    ours = {"extra_forbidden": "there is no such key", "model_type": "it must be a table"}
    says = ours.get(found["type"], found["msg"].removeprefix("Value error, "))
    return ": ".join(each for each in (".".join(map(str, found["loc"])), says) if each)


Rates = dict[tuple[Port, Port], float]
_LINKS_ARE = 'as [{"a": {"datapath_id": 1, "port": 2}, "b": {...}, "rate_bps": 1e9, "delay_s": 0.01}]'


def read_capacities(file: Path) -> tuple[Rates, Rates]:
    """Return rate (bit/s) and delay (s) of each link's directions between switches; raises UsageError.

    A rate of null is an unknown rate. Others that no link has are refused: dividing a rate that is infinite,
    or so small that half of it is 0, would never end.
    """
    try:
        settings = json.loads(file.read_text())
        if not isinstance(settings, list) or not all(isinstance(link, dict) for link in settings):
            raise TypeError
        rates: Rates = {}
        delays: Rates = {}
        for link in settings:
            if not all("datapath_id" in link[end] for end in ("a", "b")):
                continue
            a, b = (Port(int(link[end]["datapath_id"]), int(link[end]["port"])) for end in ("a", "b"))
            rate_bps = None if link["rate_bps"] is None else float(link["rate_bps"])
            delay_s = float(link["delay_s"])
            if rate_bps is not None and not LEAST_BPS <= rate_bps <= MOST_BPS:
                raise ValueError(
                    f"{a} to {b} has rate_bps {rate_bps}; it must be {LEAST_BPS:g} to {MOST_BPS:g}, or null"
                )
            if not 0 <= delay_s <= MOST_DELAY_S:
                raise ValueError(f"{a} to {b} has delay_s {delay_s}; it must be 0 to {MOST_DELAY_S:g}")
            for ends in ((a, b), (b, a)):
                if rate_bps is not None:
                    rates[ends] = rate_bps
                delays[ends] = delay_s
    except KeyError as error:
        raise UsageError(f"{file} cannot be used: a link has no {error}") from None
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from None
    except TypeError:
        raise UsageError(f"{file} cannot be used: it is not a list of links {_LINKS_ARE}") from None
    except (ValueError, OverflowError, RecursionError) as error:
        raise UsageError(f"{file} cannot be used: {error}") from None
    return rates, delays
