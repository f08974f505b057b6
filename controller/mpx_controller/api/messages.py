"""Requests and answers of REST, from which the OpenAPI description is generated."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, IPvAnyAddress, model_validator

from mpx_controller.flows import Counted
from mpx_controller.graph import switches_of
from mpx_controller.mptcp.connections import MptcpConnection
from mpx_controller.mptcp.segment import FourTuple
from mpx_controller.mptcp.subflow import Subflow
from mpx_controller.path_sets.path_set import PathSet, StreamKey
from mpx_controller.path_sets.sets import MOST_PATHS
from mpx_controller.steering import stream_of


def _text(text: object) -> object:
    if not isinstance(text, str):
        raise ValueError("an address must be a string")
    if "%" in text:
        raise ValueError("an address must have no zone")
    return text


Address = Annotated[IPvAnyAddress, BeforeValidator(_text)]
PortNumber = Annotated[int, Field(ge=1, le=65535, strict=True, description="of TCP")]
MOST_MEMBERS = 16  # of an object; none has as many
SideName = Literal["source", "sink"]


class _Asked(BaseModel):
    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _has_few_members(cls, asked: object) -> object:
        """Refuse very many members at once: an error for each of them takes far longer to make."""
        if isinstance(asked, dict) and len(asked) > MOST_MEMBERS:
            raise ValueError(f"an object may have at most {MOST_MEMBERS} members")
        return asked


class NewPathSet(_Asked):
    """Between which hosts, and over how many paths at most."""

    source: Address
    sink: Address
    paths: Annotated[
        int, Field(ge=0, le=MOST_PATHS, strict=True, description="at most; 0: as many as help")
    ] = 0


class Streams(_Asked):
    """TCP ports of streams: the source's own port, or that on which the sink listens."""

    ports: Annotated[list[PortNumber], Field(min_length=1, max_length=256)]
    side: SideName = "source"


class NewStreams(Streams):
    """TCP ports of streams, and the path that they are to be put on."""

    path: Annotated[
        int | None, Field(ge=0, strict=True, description="null: in the ratio of the predictions")
    ] = None


class Feedback(_Asked):
    """What a transfer has found out about a path."""

    path: Annotated[int, Field(ge=0, strict=True)]
    streams: Annotated[int, Field(ge=1, le=65535, strict=True, description="that were best")]
    rate_bps: Annotated[float, Field(gt=0, le=1e13, description="that the path was found to carry")]
    rtt_s: Annotated[float, Field(gt=0, le=100)]


class PathOut(BaseModel):
    """One path of a set."""

    switches: Annotated[list[str], Field(description="datapath ids, hexadecimal")]
    streams: Annotated[int, Field(description="predicted: max(1, a B R)")]
    rate_bps: Annotated[
        float | None, Field(description="beside the other paths of the set; null: no limit known")
    ]
    rtt_s: float
    group: Annotated[int, Field(description="paths of one group share a bottleneck")]
    up: Annotated[bool, Field(description="the network has it now; else its streams take others")]


class PathSetOut(BaseModel):
    """A path set."""

    id: int
    owner: str
    source: str
    sink: str
    streams: Annotated[int, Field(description="predicted, of all paths together")]
    most_streams: Annotated[int, Field(description="that may be on it at once")]
    max_flow_bps: Annotated[float, Field(description="the most the network carries between the two")]
    lease_s: Annotated[float, Field(description="it is released after so long without a sign of use")]
    paths: list[PathOut]
    ports: Annotated[dict[str, int], Field(description="of each stream, as SIDE:PORT, its path")]
    elsewhere: Annotated[
        dict[str, int | None],
        Field(description="streams whose path is not up: which they take now, null: none of the set"),
    ]


class EntryOut(BaseModel):
    """One entry of a stream."""

    switch: Annotated[str, Field(description="datapath id, hexadecimal")]
    to: Literal["source", "sink"]
    table: int
    out: Annotated[list[int], Field(description="numbers of ports")]
    packets: int
    bytes: int


class StreamOut(BaseModel):
    """The entries of one stream."""

    stream: Annotated[str, Field(description="SIDE:PORT")]
    path: int
    entries: list[EntryOut]


class FlowsOut(BaseModel):
    """What switches hold for a path set, and have counted since each entry was added."""

    id: int
    streams: list[StreamOut]
    away: Annotated[list[str], Field(description="switches that hold some and are not connected")]


class Placed(BaseModel):
    """On which path each stream is, in the order asked; its entries are in all switches."""

    paths: list[int]


class Problem(BaseModel):
    """Why a request is refused."""

    detail: str


def what_is_wrong(error: RequestValidationError) -> str:
    """Return what is wrong with a request, without what was in it, as that can be anything."""
    text = (
        f"{'.'.join(map(str, each['loc'][1:])) or 'the request'}: {each['msg']}"
        for each in error.errors()[:3]
    )
    return ascii_text("; ".join(text))


def ascii_text(text: str) -> str:
    """Return a text that any encoding can hold, and no longer than an answer needs."""
    return text.encode("ascii", "backslashreplace").decode()[:500]


def flows_out(known: PathSet, found: Mapping[int, Iterable[Counted]], away: Iterable[int]) -> FlowsOut:
    """Return the entries of a path set by its streams, as switches report them."""
    streams = {
        key: StreamOut(stream=f"{key.side}:{key.port}", path=place, entries=[])
        for key, place in known.placed.items()
    }
    for switch, some in found.items():
        for entry, packets, count in some:
            port, side, to = stream_of(known.ends, entry)
            key = StreamKey(port, side)
            if key in streams:
                out = list(entry.outputs)
                streams[key].entries.append(
                    EntryOut(
                        switch=f"{switch:x}", to=to, table=entry.table, out=out, packets=packets, bytes=count
                    )
                )
    return FlowsOut(id=known.number, streams=list(streams.values()), away=[f"{each:x}" for each in away])


class SubflowOut(BaseModel):
    """One subflow of a connection of Multipath TCP."""

    source: str
    source_port: int
    sink: str
    sink_port: int
    switches: Annotated[list[str], Field(description="on its path: datapath ids, hexadecimal")]


class ConnectionOut(BaseModel):
    """A connection of Multipath TCP."""

    id: int
    version: Annotated[int, Field(description="of the protocol: 1 is what Linux speaks")]
    source: Annotated[str, Field(description="who opened it, with the address of its first subflow")]
    sink: str
    subflows: list[SubflowOut]


def connection_out(known: MptcpConnection, steered: Mapping[FourTuple, Subflow]) -> ConnectionOut:
    """Return a connection for an answer."""
    return ConnectionOut(
        id=known.number,
        version=known.version,
        source=known.first.source,
        sink=known.first.sink,
        subflows=[
            SubflowOut(
                source=four.source,
                source_port=four.source_port,
                sink=four.sink,
                sink_port=four.sink_port,
                switches=[f"{each:x}" for each in steered[four].switches],
            )
            for four in sorted(known.subflows & steered.keys())
        ],
    )


def path_set_out(
    known: PathSet,
    lease_s: float,
    most_streams: int,
    alive: frozenset[int],
    ways: Mapping[StreamKey, int | None],
) -> PathSetOut:
    """Return a path set for an answer.

    `most_streams`: that may be on it; `alive`: the places of the paths that are there; `ways`: on which
    each stream is now.
    """
    return PathSetOut(
        id=known.number,
        owner=known.owner,
        source=known.ends.source,
        sink=known.ends.sink,
        streams=known.streams,
        most_streams=most_streams,
        max_flow_bps=known.max_flow_bps,
        lease_s=round(lease_s, 3),
        paths=[
            PathOut(
                switches=[f"{each:x}" for each in switches_of(path.path, known.ends.source_port.switch)],
                streams=path.streams,
                rate_bps=path.rate_bps if path.path else None,
                rtt_s=path.rtt_s,
                group=path.group,
                up=place in alive,
            )
            for place, path in enumerate(known.paths)
        ],
        ports={f"{key.side}:{key.port}": place for key, place in known.placed.items()},
        elsewhere={
            f"{key.side}:{key.port}": way
            for key, way in ways.items()
            if key in known.placed and way != known.placed[key]
        },
    )
