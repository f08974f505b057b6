"""What went through the proxy and when: bytes per 5 ms in each direction, and one line per connection."""

import dataclasses
import itertools
import json
from dataclasses import dataclass
from typing import Literal

BUCKET_S = 0.005

Kind = Literal["control", "data"]
Side = Literal["client", "server"]
Direction = Literal["up", "down"]
"""up: from the client to the server; down: from the server to the client."""


@dataclass(slots=True)
class ConnectionRecord:
    """One connection through the proxy; times are seconds since the proxy started."""

    number: int  # counts all connections of this proxy from 0, and names this one in calls
    kind: Kind
    opened_by: Side
    opened_s: float
    closed_s: float | None = None  # None while it is open
    ended_by: Literal["close", "reset"] | None = None
    up_bytes: int = 0  # delivered to the server
    down_bytes: int = 0  # delivered to the client


@dataclass(slots=True)
class Record:
    """Bytes that data connections delivered to the receiver's socket; control bytes are not counted.

    Keys of `up` and `down` are bucket numbers: bucket n covers n*BUCKET_S to (n+1)*BUCKET_S seconds
    after `started_unix_s`. Buckets without a byte are not listed.
    """

    started_unix_s: float
    up: dict[int, int] = dataclasses.field(default_factory=dict)
    down: dict[int, int] = dataclasses.field(default_factory=dict)
    connections: list[ConnectionRecord] = dataclasses.field(default_factory=list)

    @property
    def up_bytes(self) -> int:
        """All bytes delivered to the server."""
        return sum(self.up.values())

    @property
    def down_bytes(self) -> int:
        """All bytes delivered to the client."""
        return sum(self.down.values())

    def count(self, connection: ConnectionRecord, direction: Direction, bucket: int, size_bytes: int) -> None:
        """Count bytes of a connection that were delivered in a bucket's time."""
        if direction == "up":
            connection.up_bytes += size_bytes
        else:
            connection.down_bytes += size_bytes
        if connection.kind == "data":
            buckets = self.up if direction == "up" else self.down
            buckets[bucket] = buckets.get(bucket, 0) + size_bytes

    def copy(self) -> "Record":
        """Return a copy that no longer changes."""
        connections = [dataclasses.replace(connection) for connection in self.connections]
        return Record(self.started_unix_s, dict(self.up), dict(self.down), connections)

    def to_json(self) -> str:
        """Return the record as JSON: the fields above, buckets as a list of [number, bytes]."""
        fields = dataclasses.asdict(self)
        for direction in ("up", "down"):
            fields[direction] = sorted(fields[direction].items())
        sums = {"bucket_s": BUCKET_S, "up_bytes": self.up_bytes, "down_bytes": self.down_bytes}
        return json.dumps({**sums, **fields}) + "\n"


def longest_gap_s(record: Record, direction: Direction | None = None) -> float:
    """Return the longest time in which nothing was delivered, between the first and the last byte.

    In one direction, or with None in both together. The answer is a multiple of BUCKET_S.
    """
    chosen = (record.up, record.down) if direction is None else (getattr(record, direction),)
    used = sorted(set().union(*chosen))
    gaps = (after - before - 1 for before, after in itertools.pairwise(used))
    return max(gaps, default=0) * BUCKET_S
