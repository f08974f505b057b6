"""Network devices of the calling thread's namespace."""

import array
import fcntl
import socket
import struct

_SIOCGIFFLAGS = 0x8913
_IFF_UP = 1
_SIOCETHTOOL = 0x8946
# Set receive and transmit checksum, scatter-gather, segmentation by the device and by the stack, merging.
_OFFLOADS = {"rx": 0x15, "tx": 0x17, "sg": 0x19, "tso": 0x1F, "gso": 0x24, "gro": 0x2C}


def without_offloads(device: str) -> None:
    """Turn offloads off, so that frames are as on a wire, checksums included; raises OSError."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for command in _OFFLOADS.values():
            value = array.array("I", (command, 0))
            request = struct.pack("16sP", device.encode(), value.buffer_info()[0])
            fcntl.ioctl(any_socket, _SIOCETHTOOL, request)


def is_up(device: str) -> bool:
    """Whether a device is up; raises OSError where there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        answer = fcntl.ioctl(any_socket, _SIOCGIFFLAGS, struct.pack("16sH14x", device.encode(), 0))
    return bool(struct.unpack_from("16xH", answer)[0] & _IFF_UP)
