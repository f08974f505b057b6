"""What `mpx probe --json` prints, checked against its schema."""

import json
from importlib.resources import files
from typing import Any

import jsonschema
from mpx_command import copied, mpx

SCHEMA = json.loads(files("mpx").joinpath("probe.schema.json").read_text())


def probed(*words: object) -> dict[str, Any]:
    """Probe with --json, and return what fits the schema."""
    ended = mpx("probe", "--json", *words)
    copied(ended)
    return read(ended.out)


def read(out: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(out)
    jsonschema.Draft202012Validator(SCHEMA).validate(told)
    return told
