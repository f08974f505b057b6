"""Says when a subflow is first seen where, as a program of the namespace of a lab's switches.

    watch.py SINK DEVICE...      says `ready`; then of what goes to the address SINK, when it is first seen at
                                 each device: time, device, source, source port, `SYN` or `data`

Times are of the monotonic clock in seconds, as read here: later than the frame by what this takes.
"""

import selectors
import socket
import struct
import sys
import time

ETH_P_ALL = 3
IPV4_TCP = (b"\x08\x00", 6)
SYN = 0x02


def watch(sink: str, devices: list[str]) -> None:
    """Watch until standard input ends."""
    waiting, links = selectors.DefaultSelector(), {}
    for device in devices:
        opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        opened.bind((device, 0))
        waiting.register(opened, selectors.EVENT_READ, device)
        links[device] = opened
    waiting.register(sys.stdin, selectors.EVENT_READ, None)
    to, seen = socket.inet_aton(sink), set()
    print("ready", flush=True)
    while True:
        for key, _ in waiting.select():
            if key.data is None:
                return
            data, now_s = links[key.data].recv(100), time.monotonic()
            if (data[12:14], data[23]) != IPV4_TCP or data[30:34] != to:
                continue
            at = 14 + (data[14] & 0xF) * 4
            what = "SYN" if data[at + 13] & SYN else "data"
            (port,) = struct.unpack_from("!H", data, at)
            found = (key.data, socket.inet_ntoa(data[26:30]), port, what)
            if found not in seen:
                seen.add(found)
                print(f"{now_s:.6f}", *found, flush=True)


if __name__ == "__main__":
    watch(sys.argv[1], sys.argv[2:])
