"""What users have written down stays as it is: the Python API, the command line, exit codes, keys of JSON.

`public_names.json` holds it. A name is added there with what needs it, and none is taken away or changed
without a reason that the CHANGELOG tells. Written anew: python tests/unit/test_public_names.py
"""

import dataclasses
import inspect
import json
import re
from pathlib import Path
from typing import Any

import click

import mpx
from mpx import cli, errors

WRITTEN = Path(__file__).with_name("public_names.json")
SCHEMAS = ("report.schema.json", "probe.schema.json")


def public_names() -> dict[str, Any]:
    """Return all that users name, as plain values."""
    return {
        "api": sorted(mpx.__all__),
        "arguments": {
            name: list(inspect.signature(getattr(mpx, name)).parameters) for name in ("copy", "probe")
        },
        "options": {each.name: repr(each.default) for each in dataclasses.fields(mpx.CopyOptions)},
        "members": {
            of.__name__: sorted(name for name in {*dir(of), *fields_of(of)} if not name.startswith("_"))
            for of in (mpx.Report, mpx.Progress, mpx.ProbeResult)
        },
        "exit codes": {
            name: kind.exit_code
            for name, kind in sorted(vars(errors).items())
            if isinstance(kind, type) and issubclass(kind, mpx.MpxError)
        },
        "words": words_in(Path(mpx.__file__).parent),
        "commands": commands_of(cli.cli, "mpx"),
        "keys": {
            name: keys_of(json.loads((Path(mpx.__file__).parent / name).read_text())) for name in SCHEMAS
        },
    }


def fields_of(of: type) -> set[str]:
    return {each.name for each in dataclasses.fields(of)} if dataclasses.is_dataclass(of) else set()


def words_in(package: Path) -> list[str]:
    """Return the names of extensions of the wire (FEAT, SITE) and of variables of the environment."""
    texts = [file.read_text() for file in package.rglob("*.py")]
    return sorted({word for text in texts for word in re.findall(r"\bMPX[-_][A-Z]\w*(?:-\w+)*", text)})


def commands_of(command: click.Command, name: str) -> dict[str, list[str]]:
    """Return each command with its flags and arguments."""
    flags = [flag for each in command.params for flag in (*each.opts, *each.secondary_opts)]
    found = {name: sorted(flags)}
    if isinstance(command, click.Group):
        context = click.Context(command)
        for below in command.list_commands(context):
            inner = command.get_command(context, below)
            assert inner is not None
            found |= commands_of(inner, f"{name} {below}")
    return found


def keys_of(schema: Any, at: str = "") -> list[str]:
    """Return the keys that a JSON schema names, each with those that it is within."""
    if isinstance(schema, list):
        return sorted({key for each in schema for key in keys_of(each, at)})
    if not isinstance(schema, dict):
        return []
    found: set[str] = set()
    for key, value in schema.items():
        if key == "properties":
            for name, about in value.items():
                found |= {f"{at}.{name}", *keys_of(about, f"{at}.{name}")}
        else:
            found |= set(keys_of(value, at))
    return sorted(found)


def test_what_users_name_is_as_it_was() -> None:
    now, written = public_names(), json.loads(WRITTEN.read_text())
    assert sorted(now) == sorted(written)
    for part in written:
        assert now[part] == written[part], f"{part}: see the head of this file"


if __name__ == "__main__":
    WRITTEN.write_text(json.dumps(public_names(), indent=1, sort_keys=True) + "\n")
