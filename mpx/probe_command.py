"""`mpx probe`: reads the command line, prints what was found, draws it."""

import json

import click

from mpx.cli import Signals
from mpx.errors import MpxError, UsageError
from mpx.probing.api import probe
from mpx.probing.result import ProbeResult
from mpx.probing.schedule import SAMPLINGS
from mpx.shown import shown
from mpx.units import parse_duration

_EPILOG = """
\b
Examples:
  mpx probe ftp://dtn.example.org/
  mpx probe --window 1min --json dtn.example.org:2811
  mpx probe --plot rtt.png 192.0.2.7:22

Exit codes: 0 done, 2 usage, 6 cannot reach or lost, 130 and 143 interrupted; then what is known is printed
first.

The guide: docs/user-guide.md in the sources of mpx.
"""


@click.command("probe", epilog=_EPILOG)
@click.argument("target", metavar="TARGET")
@click.option("--window", metavar="TIME", default="10s", show_default=True, help="how long to probe")
@click.option(
    "--sampling",
    type=click.Choice(tuple(SAMPLINGS)),
    default="single",
    show_default=True,
    help="ten probes a second, or as in the paper ten probes 1 ms apart each second",
)
@click.option("--json", "as_json", is_flag=True, help="print the result as JSON, with all round-trip times")
@click.option("--plot", metavar="FILE", help="draw the round-trip times into FILE (.png, .svg, .pdf)")
@click.option("-4", "--ipv4", is_flag=True, help="use IPv4 only")
@click.option("-6", "--ipv6", is_flag=True, help="use IPv6 only")
def probe_command(
    target: str, window: str, sampling: str, as_json: bool, plot: str | None, ipv4: bool, ipv6: bool
) -> None:
    """Measure the round-trip time to a host, with its loss and jitter, as its way of answering permits.

    TARGET is a URL, HOST or HOST:PORT. Nothing is logged in to and nothing is stored there.
    """
    window_s = parse_duration(window)
    if plot:
        _check_plot(plot)
    with Signals() as signals:
        try:
            result = probe(
                target, window_s=window_s, sampling=sampling, ipv4=ipv4, ipv6=ipv6, cancel=signals.cancel
            )
        except MpxError as error:
            failure = signals.translate(error)
            if failure.result:
                _show(failure.result, as_json=as_json, plot=plot)
            raise failure from None
    _show(result, as_json=as_json, plot=plot)


def _check_plot(file: str) -> None:
    """Raise UsageError now rather than after the window."""
    from mpx.report import check_writable

    try:
        from mpx.probing.plot import check_format
    except ImportError as error:
        raise UsageError(
            f"--plot needs matplotlib ({error}); install it with: pip install 'mpx-dtn[plot]'"
        ) from None
    check_format(file)
    check_writable(file)


def _show(result: ProbeResult, *, as_json: bool, plot: str | None) -> None:
    if as_json:
        click.echo(json.dumps(result.as_dict()))
    else:
        for line in result.as_lines():
            click.echo(shown(line))
    if plot:
        from mpx.probing.plot import draw

        draw(result, plot)
