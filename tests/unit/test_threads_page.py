"""docs/threads.md names threads and locks as the code has them."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "threads.md").read_text()
SOURCES = [path.read_text() for path in (ROOT / "mpx").rglob("*.py")]


def test_every_thread_has_its_name_in_the_code() -> None:
    names = {name.removesuffix("-N") for name in re.findall(r"`(mpx-[a-zN-]+)`", PAGE)}
    texts = {text.removesuffix("-") for source in SOURCES for text in re.findall(r'"([a-z-]+)["{]', source)}
    unknown = {name for name in names if not {name, name.removeprefix("mpx-")} & texts}
    assert len(names) > 20 and not unknown


def test_every_lock_belongs_to_its_class() -> None:
    locks = set(re.findall(r"\b([A-Z]\w+)\.(_?[a-z]\w+)", PAGE.split("## Locks")[1]))
    for owner, lock in locks:
        named = re.compile(rf"^class {owner}[:(]", re.MULTILINE)
        bodies = [
            re.split(r"^class ", text[found.end() :], flags=re.MULTILINE)[0]
            for text in SOURCES
            if (found := named.search(text))
        ]
        assert any(re.search(rf"self\.{lock}\b|^    {lock}:", body, re.MULTILINE) for body in bodies), (
            f"{owner}.{lock}"
        )
    assert len(locks) > 20
