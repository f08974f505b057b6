"""docs/python.md lists the fields of CopyOptions as they are."""

from dataclasses import Field, fields
from pathlib import Path
from typing import Any

from mpx.options import CopyOptions, flag_of
from mpx.report import Progress

PAGE = Path(__file__).parents[2] / "docs/python.md"


def row(option: Field[Any]) -> str:
    """The line of the table for a field: field, option, default, meaning."""
    about, flag = option.metadata, flag_of(option.name)
    flags = [
        flag,
        *([f"--no-{flag[2:]}"] if option.default is True else []),
        *filter(None, [about.get("short")]),
    ]
    meaning = about["help"]
    if choices := about.get("choices"):
        meaning += f" ({', '.join(f'`{each!r}`' for each in choices)})"
    options = ", ".join(f"`{each}`" for each in flags)
    return f"| `{option.name}` | {options} | `{option.default!r}` | {meaning} |"


def test_the_table_is_that_of_copy_options() -> None:
    lines = PAGE.read_text().splitlines()
    begin = lines.index("| field | option | default | meaning |") + 2
    table = lines[begin : lines.index("", begin)]
    assert table == [row(option) for option in fields(CopyOptions) if option.metadata]
    (other,) = (option.name for option in fields(CopyOptions) if not option.metadata)
    assert f"`{other}`" in PAGE.read_text()


def test_progress_is_described() -> None:
    guide = PAGE.with_name("user-guide.md").read_text()
    assert [each.name for each in fields(Progress) if f"`{each.name}`" not in guide] == []
