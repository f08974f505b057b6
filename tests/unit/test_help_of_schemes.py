"""The help of an option names every scheme that it is for, in mpx copy, list and unfinished."""

import re

import pytest
from click.testing import CliRunner

from mpx.cli import cli
from mpx.endpoints.schemes import SCHEMES
from mpx.options import flag_of

GFAL_ALONE = "srm"  # which is reached by gfal2, whatever else is


def takers(option: str) -> set[str]:
    """The schemes whose servers take an option."""
    found = {scheme for scheme, can in SCHEMES.items() if option in can.own_options}
    return {"gfal2" if scheme == GFAL_ALONE else scheme for scheme in found}


@pytest.mark.parametrize("command", ["copy", "list", "unfinished"])
@pytest.mark.parametrize("option", ["ca", "certificate", "token_files"])
def test_it_names_them(command: str, option: str) -> None:
    shown = " ".join(CliRunner().invoke(cli, [command, "--help"]).output.split())
    found = re.search(rf"{flag_of(option)} \S+ with ([a-z0-9, ]+):", shown)
    assert found, shown
    assert set(found[1].split(", ")) == takers(option)
