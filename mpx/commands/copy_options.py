"""Options of CopyOptions on the command line: their flags, units, defaults and help."""

import re
from collections.abc import Callable
from dataclasses import Field, fields
from typing import Any

import click

from mpx.errors import UsageError
from mpx.options import CopyOptions, flag_of
from mpx.units import format_rate, format_size, parse_duration, parse_rate, parse_size


def reader(read: Callable[[str], Any]) -> Callable[[click.Context, click.Parameter, str | None], Any]:
    """Return the callback of an option that reads its value by `read`, whose errors then name the option."""

    def callback(_: click.Context, option: click.Parameter, value: str | None) -> Any:
        if value is None:
            return None
        try:
            return read(value)
        except UsageError as error:
            raise UsageError(f"{max(option.opts, key=len)}: {error}") from None

    return callback


def _count(text: str) -> int | None:
    if text == "auto":
        return None
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise UsageError(f"{text!r} is not a number; write a whole number, or auto")
    return int(text)


_READERS: dict[str, Callable[[str], Any]] = {
    "duration": parse_duration,
    "rate": parse_rate,
    "size": parse_size,
    "count": _count,
}
_METAVARS = {
    "duration": "TIME",
    "rate": "RATE",
    "size": "SIZE",
    "count": "N|auto",
    "text": "TEXT",
    "texts": "TEXT",
}


def _shown_default(kind: str, value: Any) -> str | None:
    if value in (None, ()):
        return "auto" if kind == "count" else None
    if kind == "duration":
        return f"{value:g}s"
    shown = {"rate": format_rate, "size": format_size}.get(kind, str)
    return shown(value).replace(" ", "")


def with_options(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return what gives a command these options of CopyOptions; without names: all."""

    def derive(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(fields(CopyOptions)):
            if option.metadata and (not names or option.name in names):
                command = _with_option(command, option)
        return command

    return derive


def _with_option(command: Callable[..., Any], option: Field[Any]) -> Callable[..., Any]:
    about = option.metadata
    kind, flags = about["kind"], [flag_of(option.name)]
    if "short" in about:
        flags.append(about["short"])
    more: dict[str, Any] = {"help": about["help"], "default": None}
    if kind == "flag":
        if option.default is True:
            more["help"] += f"  [default: {flags[0][2:]}]"
            flags = [f"{flags[0]}/--no-{flags[0][2:]}"]
        more |= {"is_flag": True}
    elif kind == "choice":
        more |= {"type": click.Choice(about["choices"])}
    elif kind == "number":
        more |= {"type": int, "metavar": "N"}
    elif kind == "factor":
        more |= {"type": float, "metavar": "FACTOR"}
    else:
        more |= {"metavar": about.get("metavar", _METAVARS[kind]), "multiple": kind == "texts"}
        if kind in _READERS:
            more |= {"callback": reader(_READERS[kind])}
    default = _shown_default(kind, option.default)
    if default is not None and kind != "flag":
        more["help"] += f"  [default: {default}]"
    return click.option(*flags, option.name, **more)(command)
