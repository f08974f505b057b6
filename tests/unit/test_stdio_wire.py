"""What is said before the dialogue of `mpx serve --stdio`: read as it was written, and nothing else."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mpx.endpoints.ftp.extensions import stdio
from mpx.endpoints.ftp.extensions.stdio import LaneRequest, Ready, ServeRequest
from mpx.endpoints.ftp.ssh.bundle import for_older
from mpx.endpoints.ftp.ssh.loader import loader_words
from mpx.endpoints.ssh.command_line import RemoteProgram, arguments, serve_command
from mpx.errors import UsageError
from mpx.location import Location

PORTS = st.none() | st.tuples(st.integers(1, 65535), st.integers(1, 65535))
REQUESTS = st.builds(ServeRequest, st.text(), st.text(), PORTS) | st.builds(LaneRequest, st.text(), st.text())


@given(REQUESTS)
def test_a_request_is_read_as_it_was_written(request: ServeRequest | LaneRequest) -> None:
    sent = stdio.encode_request(request)
    digits, body = sent[: stdio.LENGTH_DIGITS], sent[stdio.LENGTH_DIGITS :]
    assert stdio.parse_length(digits) == len(body)
    assert stdio.parse_request(body) == request


@given(st.builds(Ready, st.text(), st.text(), st.integers(0, 65535)))
def test_an_answer_is_read_as_it_was_written(ready: Ready) -> None:
    line = stdio.encode_ready(ready)
    assert line.count(b"\n") == 2
    assert stdio.parse_ready(line.removeprefix(stdio.MAGIC)) == ready


@given(st.binary(max_size=300))
@example(b'{"path": "x", "host": "y", "port": 1e999}')
@example(b'{"pem": "x", "secret": "y", "ports": [1e999, 1]}')
def test_noise_is_a_clear_error(data: bytes) -> None:
    for parse in (stdio.parse_length, stdio.parse_request, stdio.parse_ready):
        try:
            parse(data)
        except ValueError as error:
            assert "not a" in str(error)


def test_nothing_secret_is_shown() -> None:
    assert "hush" not in repr(ServeRequest("hush", "hush"))


# --- command lines ---------------------------------------------------------------------------------


def test_ssh_is_given_nothing_to_take_for_an_option() -> None:
    words = arguments(Location("ssh", "/some/name", "host", 22, "me"), "/tmp/c")
    assert words[-2:] == ["--", "host"]
    assert not [word for word in words if "name" in word]
    assert {"-x", "-a", "-oClearAllForwardings=yes"} <= set(words)


@pytest.mark.parametrize("text", ["a b", "a'b", 'a"b', "a;b", "$(x)", "`x`", "-x", "a!b", "a\nb", "", "a|b"])
def test_programs_that_a_shell_would_act_on_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--remote-mpx is the name of a program"):
        RemoteProgram(mpx=text)
    with pytest.raises(UsageError, match="--remote-python is the name of a program"):
        RemoteProgram(python=text)


def test_the_loader_stands_in_single_quotes_of_any_shell() -> None:
    command = serve_command(RemoteProgram(bootstrap=True), loader_words(b"program", keep=True))
    assert "!" not in command
    assert "\n" not in command
    assert command.startswith("exec sh -c '")


# --- for an older Python ---------------------------------------------------------------------------


def test_a_module_is_turned_into_one_for_an_older_python() -> None:
    words = ('"""Words."""', "import re", "@dataclass(frozen=True, slots=True)", "class A: ...")
    source = "\n".join([*words, "x = zip(a, b, strict=True)", ""])
    older = for_older(source)
    assert older.splitlines()[1] == "from __future__ import annotations"
    assert "slots" not in older
    assert "strict" not in older
    assert for_older("@dataclass(slots=True)\nclass A: ...\n").splitlines()[1] == "@dataclass"
    pattern = for_older('X = re.compile(r"(?:[^a]*+b)++")\n')
    assert re.search(r"\[\^a\]\*b\)\+\"", pattern)
