"""The queueing discipline netem as a link of the kernel has it: delay, jitter, and losses that have a seed.

`tc` of iproute2 cannot tell netem a seed before version 6.6, so the message to the kernel is made here
(RTM_NEWQDISC; the numbers are those of linux/pkt_sched.h).
"""

import errno
import os
import socket
import struct

from mpx_lab.emulator.accounting import NS
from mpx_lab.shape import Shape
from mpx_lab.state import LabError

HANDLE = 0x00010000  # 1:
_ROOT = 0xFFFFFFFF
_FRAMES = 10_000_000  # in flight at most: large enough that none is lost there

_NEW_QDISC, _ERROR = 36, 2
_REQUEST, _ACK, _ONLY_NEW = 0x1, 0x4, 0x600  # the last: created, and an error where there is one
_KIND, _OPTIONS = 1, 2
_DELAY_NS, _JITTER_NS, _SLOT, _SLOT_TABLE, _SEED = 10, 11, 12, 13, 14
_UNIFORM = range(2 - 8192, 8192, 4)  # evenly; 8192 is once the spread


def set_netem(device: str, shape: Shape, *, new: bool, seeded: bool) -> None:
    """Make the root of a device of this network namespace a netem of that shape, or change it to that.

    `seeded`: its losses begin anew. What is on its way keeps its time. Raises LabError if the kernel refuses.
    """
    options = _options(shape, seeded)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        kernel.bind((0, 0))
        body = struct.pack("=BxxxiIII", 0, socket.if_nametoindex(device), HANDLE, _ROOT, 0)
        body += _attribute(_KIND, b"netem\0") + _attribute(_OPTIONS, options)
        flags = _REQUEST | _ACK | (_ONLY_NEW if new else 0)
        kernel.send(struct.pack("=IHHII", 16 + len(body), _NEW_QDISC, flags, 1, 0) + body)
        answer = kernel.recv(1 << 16)
    (kind,) = struct.unpack_from("=H", answer, 4)
    (number,) = struct.unpack_from("=i", answer, 16)
    if kind != _ERROR or number:
        why = os.strerror(-number if kind == _ERROR else errno.EPROTO)
        raise LabError(f"the kernel refuses a queueing discipline netem at {device}: {why}")


def _options(shape: Shape, seeded: bool) -> bytes:
    lost = round(shape.loss * 0xFFFFFFFF)
    options = struct.pack("=6I", 0, _FRAMES, lost, 0, 0, 0)
    # With no delay netem leaves frames with their sockets, and TCP lets only a few stand in the queue behind.
    options += _attribute(_DELAY_NS, struct.pack("=q", max(1, round(shape.delay_s * NS))))
    options += _attribute(_JITTER_NS, struct.pack("=q", round(shape.reorder_s * NS)))
    half_ns = round(shape.jitter_s * NS / 2)
    options += _attribute(_SLOT, struct.pack("=qqiiqq", 0, 0, 0, 0, half_ns, half_ns))
    if half_ns:
        options += _attribute(_SLOT_TABLE, struct.pack(f"={len(_UNIFORM)}h", *_UNIFORM))
    if seeded:
        options += _attribute(_SEED, struct.pack("=Q", shape.seed))
    return options


def _attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)
