"""`mpx controller status`, `paths` and `flows`: what a controller that runs knows and does."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from mpx_controller.rest_client import RestClient

DEFAULT_URL = "http://127.0.0.1:6680"

_Command = Callable[..., None]


def _asking(command: _Command) -> _Command:
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print what it answers as JSON."),
        click.option(
            "--token-file",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="A token to show.  [default: that in MPX_CONTROLLER_TOKEN]",
        ),
        click.option("--url", metavar="URL", default=DEFAULT_URL, show_default=True, help="Where it is."),
    ):
        command = option(command)
    return command


@click.command()
@_asking
def status(url: str, token_file: Path | None, as_json: bool) -> None:
    """Show whether it runs, with its switches, links, hosts and path sets."""
    from mpx_controller.status_text import status_lines

    def asked(controller: "RestClient") -> dict[str, Any]:
        known = {
            name: controller.get(path) for name, path in (("health", "healthz"), ("path_sets", "path-sets"))
        }
        return {**known, **controller.get("topology")}

    _show(url, token_file, asked, None if as_json else lambda told: status_lines(url, told))


@click.command()
@_asking
def paths(url: str, token_file: Path | None, as_json: bool) -> None:
    """Show your path sets with what is expected of each path; on its own host all there are.

    There DELETE of /path-sets/N ends any of them (docs/controller.md).
    """
    from mpx_controller.status_text import paths_lines

    _show(url, token_file, lambda controller: controller.get("path-sets"), None if as_json else paths_lines)


@click.command()
@click.argument("numbers", metavar="[PATH-SET]...", type=click.IntRange(min=1), nargs=-1)
@_asking
def flows(numbers: tuple[int, ...], url: str, token_file: Path | None, as_json: bool) -> None:
    """Show which switches hold which entries of the streams, and what these have counted."""
    from mpx_controller.status_text import flows_lines

    def asked(controller: "RestClient") -> list[Any]:
        wanted = numbers or [each["id"] for each in controller.get("path-sets")]
        return [controller.get(f"path-sets/{number}/flows") for number in wanted]

    _show(url, token_file, asked, None if as_json else flows_lines)


def _show(
    url: str,
    token_file: Path | None,
    asked: Callable[["RestClient"], Any],
    lines: Callable[[Any], Iterable[str]] | None,
) -> None:
    """Print what is asked, as JSON without `lines`; raises MpxError."""
    from mpx.errors import UsageError
    from mpx.text import shown
    from mpx_controller.rest_client import RestClient, read_token

    controller = RestClient(url, read_token(token_file))
    try:
        told = asked(controller)
        text = [json.dumps(told, indent=2)] if lines is None else [shown(line) for line in lines(told)]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"what answers at {url} is not a controller of this version ({error!r})") from None
    for line in text:
        click.echo(line)
