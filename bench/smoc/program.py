"""One end of a measurement in the manner of iperf, as a program of a host: zeros over TCP or Multipath TCP.

    program.py receive PORT           says `ready`; then bytes received so far and when, every 50 ms
    program.py send PROTOCOL HOST PORT CONNECTIONS SECONDS RATE

Times are of the monotonic clock in seconds, which all hosts of a machine share. A sender says when it began
to connect. RATE is bit/s of all connections; 0: as fast as they go.
"""

import socket
import sys
import threading
import time

MPTCP = 262  # IPPROTO_MPTCP
EVERY_S = 0.05
PIECE = bytes(256 * 1024)


def receive(port: int) -> None:
    """Count what all connections bring, until standard input ends."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("", port))
    listening.listen(64)
    counts: list[list[int]] = []

    def drain(connection: socket.socket, count: list[int]) -> None:
        buffer = bytearray(len(PIECE))
        while got := connection.recv_into(buffer):
            count[0] += got

    def accept() -> None:
        while True:
            counts.append([0])
            threading.Thread(target=drain, args=(listening.accept()[0], counts[-1]), daemon=True).start()

    def count() -> None:
        while True:
            time.sleep(EVERY_S)
            print(f"{time.monotonic():.4f} {sum(each[0] for each in list(counts))}", flush=True)

    for each in (accept, count):
        threading.Thread(target=each, daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()


def send(protocol: str, host: str, port: int, connections: int, seconds: float, rate_bps: float) -> None:
    """Send over so many connections for so long."""
    print(f"{time.monotonic():.4f}", flush=True)
    until_s = time.monotonic() + seconds

    def fill() -> None:
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP if protocol == "mptcp" else 0)
        connection.connect((host, port))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, b"\1" + bytes(15))
        piece = PIECE if not rate_bps else PIECE[: int(rate_bps / connections / 8 * 0.01)]
        next_s = time.monotonic()
        while time.monotonic() < until_s:
            try:
                connection.send(piece)
            except BlockingIOError:
                continue
            if rate_bps:
                next_s += 0.01
                time.sleep(max(0.0, next_s - time.monotonic()))
        connection.close()

    filling = [threading.Thread(target=fill) for _ in range(connections)]
    for each in filling:
        each.start()
    for each in filling:
        each.join()


if __name__ == "__main__":
    if sys.argv[1] == "receive":
        receive(int(sys.argv[2]))
    else:
        protocol, host, *numbers = sys.argv[2:]
        port, connections, seconds, rate_bps = map(float, numbers)
        send(protocol, host, int(port), int(connections), seconds, rate_bps)
