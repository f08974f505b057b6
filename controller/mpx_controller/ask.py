"""`mpx controller status`, `paths` and `flows`: the state of a running controller."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from mpx_controller.rest_client import RestClient

DEFAULT_URL = "http://127.0.0.1:6680"

OF_CONTROLLER = (  # options of all commands that ask one
    click.option(
        "--url", metavar="URL", default=DEFAULT_URL, show_default=True, help="URL of the controller."
    ),
    click.option(
        "--token-file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="File with the token.  [default: the token in MPX_CONTROLLER_TOKEN]",
    ),
)

_Command = Callable[..., None]


def _asking(command: _Command) -> _Command:
    as_json = click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
    for option in reversed((*OF_CONTROLLER, as_json)):
        command = option(command)
    return command


@click.command()
@_asking
def status(url: str, token_file: Path | None, as_json: bool) -> None:
    """Show the switches, links, hosts and path sets of a running controller."""
    from mpx_controller.status_text import status_lines

    def request(controller: "RestClient") -> dict[str, Any]:
        known = {
            name: controller.get(path) for name, path in (("health", "healthz"), ("path_sets", "path-sets"))
        }
        return {**known, **controller.get("topology")}

    _show(url, token_file, request, None if as_json else lambda answer: status_lines(url, answer))


@click.command()
@_asking
def paths(url: str, token_file: Path | None, as_json: bool) -> None:
    """Show your path sets with the predictions for each path; on the controller's own host all of them.

    To end a set: curl -X DELETE URL/path-sets/N; from other hosts with your token (docs/controller.md).
    """
    from mpx_controller.status_text import paths_lines

    _show(url, token_file, lambda controller: controller.get("path-sets"), None if as_json else paths_lines)


@click.command()
@click.argument("numbers", metavar="[PATH-SET]...", type=click.IntRange(min=1), nargs=-1)
@_asking
def flows(numbers: tuple[int, ...], url: str, token_file: Path | None, as_json: bool) -> None:
    """Show the entries of streams in each switch, with their counters."""
    from mpx_controller.status_text import flows_lines

    def request(controller: "RestClient") -> list[Any]:
        wanted = numbers or [each["id"] for each in controller.get("path-sets")]
        return [controller.get(f"path-sets/{number}/flows") for number in wanted]

    _show(url, token_file, request, None if as_json else flows_lines)


def _show(
    url: str,
    token_file: Path | None,
    request: Callable[["RestClient"], Any],
    lines: Callable[[Any], Iterable[str]] | None,
) -> None:
    """Print the answer to a request, as JSON without `lines`; raises MpxError."""
    from mpx.errors import UsageError
    from mpx.text import shown
    from mpx_controller.rest_client import RestClient, read_token

    controller = RestClient(url, read_token(token_file))
    try:
        answer = request(controller)
        text = [json.dumps(answer, indent=2)] if lines is None else [shown(line) for line in lines(answer)]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"what answers at {url} is not a controller of this version ({error!r})") from None
    for line in text:
        click.echo(line)
