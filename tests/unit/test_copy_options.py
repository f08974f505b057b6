"""Values of options on the command line."""

from typing import Any

import click
import pytest
from click.testing import CliRunner

from mpx.choices import parse_ports
from mpx.commands.copy import copy_command
from mpx.commands.copy_options import _count, with_options
from mpx.commands.listing import list_command, unfinished_command
from mpx.errors import UsageError
from mpx.options import CopyOptions


@pytest.mark.parametrize("text", ["", "x", "-1", "²", "٣", "1.5", "9" * 5000, "1\n"])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        _count(text)
    with pytest.raises(UsageError):
        parse_ports(f"{text}-{text}")


def test_numbers() -> None:
    assert (_count("auto"), _count("17")) == (None, 17)
    assert parse_ports("40000-41000") == parse_ports(" 40000, 41000") == (40000, 41000)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"streams": "4"}, "--streams is a whole number, not '4'"),
        ({"streams": True}, "--streams is"),
        ({"files": 2.5}, "--files is"),
        ({"max_streams": None}, "--max-streams is"),
        ({"retries": None}, "--retries is"),
        ({"rate_bps": "8Mbit/s"}, "--rate is a number of bits per second"),
        ({"timeout_s": "30s"}, "--timeout is a number of seconds"),
        ({"timeout_s": float("nan")}, "--timeout must be"),
        ({"timeout_s": float("inf")}, "--timeout must be"),
        ({"timeout_s": 1e7}, "--timeout must be at most ten days"),
        ({"block_size_bytes": b"4"}, "--block-size is"),
        ({"tuner": "paper", "growth": "2"}, "--growth is"),
        ({"recursive": "yes"}, "--recursive is True or False"),
        ({"resume": 1}, "--continue is True or False"),
        ({"links": ["keep"]}, "--links is text"),
        ({"congestion": None}, "--congestion is text"),
        ({"partial_prefix": None}, "--partial-prefix is text"),
        ({"port_range": (1, 2)}, "--port-range is text"),
        ({"token_files": "/tmp/token"}, "--token-file is a tuple of texts, not '/tmp/token'"),
        ({"token_files": ["/tmp/token"]}, "--token-file is a tuple of texts"),
        ({"send_token_to": (7,)}, "--send-token-to is a tuple of texts"),
        ({"send_token_to": None}, "--send-token-to is a tuple of texts"),
        ({"ca": ("/etc/ca",)}, "--ca is text"),
    ],
)
def test_values_of_another_type_are_refused_by_the_name_of_the_option(
    given: dict[str, object], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        CopyOptions(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"timeout_s": 0.0}, "--timeout must be above 0 and finite, not 0 s"),
        ({"rate_bps": float("nan")}, "--rate must be above 0 and finite, not nan bit/s"),
        ({"block_size_bytes": 0}, "--block-size must be above 0 and finite, not 0 B"),
        ({"block_size_bytes": 4}, "--block-size must be at least 4 KiB, not 4 B"),
        ({"block_size_bytes": 4 * 1024**3}, "--block-size must be at most 2 GiB, not 4 GiB"),
        ({"tuner": "paper", "growth": float("nan")}, "--growth must be above 0 and finite, not nan"),
        ({"tuner": "paper", "growth": float("inf")}, "--growth must be above 0 and finite, not inf"),
        ({"tuner": "paper", "growth": 1e308}, r"--growth must be at most 100, not 1e\+308"),
        ({"retries": -1}, "--retries must be at least 0, not -1"),
        ({"max_streams": 10**30}, f"--max-streams must be at most 10000, not {10**30}"),
        ({"tuner": "paper", "chunk_time_s": 1e-6}, "--chunk-time must be at least 0.01 s, not 1e-06 s"),
    ],
)
def test_numbers_that_no_copy_can_use_are_refused_with_their_unit(
    given: dict[str, object], says: str
) -> None:
    with pytest.raises(UsageError, match=f"^{says}$"):
        CopyOptions(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--rate", "abc"], "--rate: 'abc' is not a rate"),
        (["--probe-first", "1y"], "--probe-first: '1y' is not a duration"),
        (["--port-range", "9"], "--port-range: not a range of ports"),
        (["--token-file", "=x"], "--token-file: '' is not a host"),
        (
            ["--token-file", "a.org=x", "--token-file", "a.org=y"],
            "--token-file: 'x' and 'y' are for the same",
        ),
        (["--send-token-to", "a.org", "--send-token-to", "a/b"], "--send-token-to: 'a/b' is not a host"),
        (["--source-ports", "9-3"], "--source-ports: not a range of ports"),
    ],
)
def test_what_cannot_be_read_is_refused_by_the_name_of_the_option(words: list[str], said: str) -> None:
    done = CliRunner().invoke(copy_command, [*words, "a", "ftp://host/b"])
    assert isinstance(done.exception, UsageError) and str(done.exception).startswith(said)


def test_an_option_that_is_repeated() -> None:
    """Each value counts, and without any the option was not given."""
    words = ["--token-file", "one", "--send-token-to", "a.org", "--token-file", "b.org=two"]
    seen: list[CopyOptions] = []

    @click.command()
    @with_options("token_files", "send_token_to")
    def command(**given: Any) -> None:
        seen.append(CopyOptions(**given))

    for given in (words, []):
        assert CliRunner().invoke(command, given).exit_code == 0
    assert seen == [CopyOptions(token_files=("one", "b.org=two"), send_token_to=("a.org",)), CopyOptions()]
    assert (
        not seen[1].was_given("token_files")
        and "default" not in CliRunner().invoke(command, ["--help"]).output
    )


def test_options_of_servers_are_for_those_that_are_asked() -> None:
    done = CliRunner().invoke(unfinished_command, ["--token-file", "one"])
    assert isinstance(done.exception, UsageError)
    assert str(done.exception) == "--token-file is for --discard; give that too"
    assert CliRunner().invoke(unfinished_command, ["--discard", "--token-file", "one"]).exit_code == 0
    for command in (list_command, unfinished_command):
        flags = {flag for option in command.params for flag in option.opts}
        assert {"--ca", "--cert", "--key", "--token-file", "--send-token-to"} <= flags
