"""The model that comes with mpx is made of the data that come with it."""

import json
import tarfile
from pathlib import Path

import pytest
from mpx_train.card import digest
from mpx_train.train import TRAINED

from mpx.ops_classifier import SHIPPED, load

ARCHIVES = Path(__file__).parent.parent.parent / "models" / "ops"


def test_it_has_a_part_for_each_way_of_watching() -> None:
    parts = load(SHIPPED).parts
    assert {(part.kind, part.window_s) for each in parts.values() for part in each} == {
        (kind.name, kind.window_s) for kind in TRAINED
    }


@pytest.mark.long  # to unpack
def test_its_card_names_the_data_in_the_archives(tmp_path: Path) -> None:
    for file in sorted(ARCHIVES.glob("*.tar.xz")):
        with tarfile.open(file) as tar:
            tar.extractall(tmp_path, filter="data")
    card = json.loads((SHIPPED / "model.json").read_text())["card"]
    assert card["data"]["digest"] == digest(tmp_path)
