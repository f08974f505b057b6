"""A proxy that makes loopback a long path: delay, rate and faults in front of an FTP server."""

from mpx_lab.proxy.record import BUCKET_S, ConnectionRecord, Direction, Record, longest_gap_s
from mpx_lab.proxy.server import DelayProxy

__all__ = ["BUCKET_S", "ConnectionRecord", "DelayProxy", "Direction", "Record", "longest_gap_s"]
