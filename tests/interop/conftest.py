"""What tests of copies between two servers share."""

from pathlib import Path

import pytest


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """Those that the servers serve: of the source, and of the destination."""
    made = tmp_path / "one/from", tmp_path / "other/to"
    for folder in made:
        folder.mkdir(parents=True)
        folder.parent.chmod(0o755)
    return made
