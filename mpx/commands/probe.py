"""`mpx probe`: reads the command line, prints what was found, draws it."""

import json
import logging
import warnings
from dataclasses import replace
from pathlib import Path

import click
from click.core import ParameterSource

from mpx.choices import CLASSIFIERS, FAIR, PASSIVELY, POLICIES, PROBE_MODES
from mpx.commands.copy_options import reader, with_options
from mpx.commands.elapsed import elapsed
from mpx.commands.output import OutputFailed, complain
from mpx.errors import MpxError, UsageError
from mpx.files.atomic_file import check_writable
from mpx.probing.api import probe
from mpx.probing.bursts import PROFILE_KINDS, SHORT, whole_periods_s
from mpx.probing.result import ProbeResult
from mpx.rtt.schedule import SAMPLINGS
from mpx.signals import Signals
from mpx.text import shown
from mpx.units import format_duration, parse_duration

MUCH_LONGER = 1.1  # than was asked for: worth a line
_FORMATS = (".png", ".svg", ".pdf")

_EPILOG = """
\b
Examples:
  mpx probe https://archive.example.org
  mpx probe davs://se.example.org:1094
  mpx probe s3://bucket --endpoint-url https://s3.example.org
  mpx probe --window 1min --json dtn.example.org:2811
  mpx probe --mode active ftp://dtn.example.org/
  mpx probe --plot rtt.png 192.0.2.7:22

Exit codes: 0 done, 2 usage, 5 login refused, 6 target unreachable or lost, 7 server stopped accepting
data, 129, 130 and 143 interrupted. What is known by then is printed first.

More: docs/probe.md in the sources of mpx.
"""


@click.command("probe", epilog=_EPILOG)
@click.argument("target", metavar="TARGET")
@click.option(
    "--mode",
    type=click.Choice(PROBE_MODES),
    default=PASSIVELY,
    show_default=True,
    help="passive: probes only; active: bursts of data too, which show rate and queue but disturb others",
)
@click.option(
    "--profile",
    type=click.Choice(tuple(PROFILE_KINDS)),
    default=SHORT,
    show_default=True,
    help="burst pattern: short (CUBIC 2 s, BBR 2 s, pause 1 s) or paper (CUBIC, BBR, CUBIC, pause: 5 s each)",
)
@click.option(
    "--window",
    "window_s",
    metavar="TIME",
    default="10s",
    show_default=True,
    callback=reader(parse_duration),
    help="how long to probe",
)
@click.option(
    "--sampling",
    type=click.Choice(tuple(SAMPLINGS)),
    default="single",
    show_default=True,
    help="single: ten probes a second; paper: ten probes 1 ms apart each second",
)
@click.option(
    "--classifier",
    type=click.Choice(CLASSIFIERS),
    help="what reads the background: trees over features (default), or nearest neighbours in dynamic time "
    "warping as in OPS (default with --sampling paper)",
)
@click.option(
    "--policy",
    type=click.Choice(POLICIES),
    default=FAIR,
    show_default=True,
    help="policy for the reported decision, as in mpx copy",
)
@click.option(
    "--json", "as_json", is_flag=True, help="print the result as JSON, with the series of round-trip times"
)
@click.option("--plot", metavar="FILE", help="draw the round-trip times into FILE (.png, .svg, .pdf)")
@click.option("-4", "--ipv4", is_flag=True, help="use IPv4 only")
@click.option("-6", "--ipv6", is_flag=True, help="use IPv6 only")
@with_options("region", "endpoint_url")
def probe_command(
    target: str,
    mode: str,
    profile: str,
    window_s: float,
    sampling: str,
    classifier: str | None,
    policy: str,
    as_json: bool,
    plot: str | None,
    ipv4: bool,
    ipv6: bool,
    region: str | None,
    endpoint_url: str | None,
) -> None:
    """Measure the round-trip time to a host, and tell what shares the path and what a copy would do about it.

    TARGET is a URL (https, http, davs, dav, s3, gsiftp, ftp, mpx), HOST (port 2811) or HOST:PORT, as HOST:22
    for ssh. Nothing is stored there, and without --mode active nothing is logged in to but mpx:// (with its
    token).
    """
    context = click.get_current_context()
    given = context.get_parameter_source("profile") is not ParameterSource.DEFAULT
    if given and mode == PASSIVELY:
        raise UsageError("--profile selects the bursts of --mode active; give that too, or leave it out")
    if plot:
        _check_plot(plot)
    whole_s = window_s if mode == PASSIVELY else whole_periods_s(PROFILE_KINDS[profile], window_s)
    if whole_s > MUCH_LONGER * window_s:
        complain(f"probing for {format_duration(whole_s)}, as bursts have whole periods")
    with Signals(unfinished="interrupted") as signals:
        try:
            with elapsed(f"probing {target}", whole_s):
                result = probe(
                    target,
                    window_s=window_s,
                    sampling=sampling,
                    mode=mode,
                    profile=profile,
                    policy=policy,
                    classifier=classifier,
                    ipv4=ipv4,
                    ipv6=ipv6,
                    region=region,
                    endpoint_url=endpoint_url,
                    cancel=signals.cancel,
                )
        except MpxError as error:
            failure = signals.translate(error)
            if failure.result:
                _show_what_is_known(replace(failure.result, exit_code=failure.exit_code), as_json, plot)
            raise failure from None
    _show(result, as_json=as_json, plot=plot)


def _check_plot(file: str) -> None:
    """Raise UsageError now rather than after the window."""
    if Path(file).suffix.lower() not in _FORMATS:
        raise UsageError(f"--plot {file}: no such format; end the name in .png, .svg or .pdf")
    check_writable(file)
    _silence_libraries()
    try:
        import mpx.probing.plot  # noqa: F401
    except ImportError as error:
        why = " ".join(str(error).split())  # some fill several lines
        raise UsageError(
            f"--plot needs matplotlib ({why}); install it with mpx, in its sources: pip install '.[plot]'"
        ) from None


def _silence_libraries() -> None:
    """Keep off the terminal what matplotlib and its imports log or warn of, such as a cache of fonts."""
    logging.getLogger().addHandler(logging.NullHandler())
    warnings.simplefilter("ignore")


def _show_what_is_known(result: ProbeResult, as_json: bool, plot: str | None) -> None:
    """Show a result that is not whole; the exit code is that of what ended it, whatever becomes of this."""
    try:
        _show(result, as_json=as_json, plot=plot)
    except BrokenPipeError:  # nobody reads it
        return
    except (UsageError, OutputFailed) as error:
        complain(str(error))


def _show(result: ProbeResult, *, as_json: bool, plot: str | None) -> None:
    if as_json:
        click.echo(json.dumps(result.as_dict()))
    else:
        for line in result.as_lines():
            click.echo(shown(line))
    if plot:
        from mpx.probing.plot import draw

        draw(result, plot)
