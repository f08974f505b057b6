"""The proxy as a command: `python -m mpx_lab.proxy --to 127.0.0.1:2811 --rtt 30ms --rate 80Mbit/s`."""

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from mpx.errors import UsageError
from mpx.units import parse_duration, parse_rate, parse_size
from mpx_lab.proxy.server import DelayProxy


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT, then write the record; returns the exit code."""
    options = _parser().parse_args(arguments)
    # Blocked before the proxy's thread starts, which inherits the mask: sigwait below takes the signals.
    ends = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    try:
        target_host, target_port = _address(options.to)
        proxy = DelayProxy(
            (target_host, target_port),
            rtt_s=parse_duration(options.rtt),
            rate_bps=options.rate and parse_rate(options.rate),
            total_rate_bps=options.total_rate and parse_rate(options.total_rate),
            window_bytes=options.window and parse_size(options.window),
            host=options.host,
            port=options.port,
        )
    except (UsageError, OSError) as error:
        sys.stderr.write(f"proxy: {error}\n")
        return UsageError.exit_code
    with proxy:
        host = f"[{options.host}]" if ":" in options.host else options.host
        sys.stdout.write(f"proxy ready: ftp://{host}:{proxy.port}/\n")
        sys.stdout.flush()
        signal.sigwait(ends)
    if options.record:
        options.record.write_text(proxy.record().to_json())
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m mpx_lab.proxy", description=__doc__)
    parser.add_argument("--to", required=True, metavar="HOST:PORT", help="the server; IPv6 as [::1]:2811")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=0, help="port to listen on (default: any free port)")
    parser.add_argument("--rtt", default="30ms", help="round-trip time to add (default: %(default)s)")
    parser.add_argument(
        "--rate", help="rate of each connection and direction, e.g. 80Mbit/s (default: no limit)"
    )
    parser.add_argument("--total-rate", help="rate of all data connections together, in each direction")
    parser.add_argument("--window", help="bytes in flight per connection and direction, e.g. 4MiB")
    parser.add_argument("--record", type=Path, metavar="FILE", help="write the record to it at the end")
    return parser


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal():
        raise UsageError(f"'{text}' is not an address: write HOST:PORT, for example 127.0.0.1:2811")
    return host.strip("[]"), int(port)


if __name__ == "__main__":
    sys.exit(main())
