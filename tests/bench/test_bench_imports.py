"""Every bench starts: what it imports is there, whoever has renamed what it shares with others."""

import os
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parents[2] / "bench"
IMPORT_ALL = """
import importlib, sys, traceback
failed = False
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except Exception:
        failed = True
        traceback.print_exc()
sys.exit(failed)
"""


def test_every_bench_can_be_imported() -> None:
    names = [file.stem for file in sorted(BENCH.glob("*.py"))]
    assert "lab_fidelity" in names
    ended = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, *names],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(BENCH)},
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
