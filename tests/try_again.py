"""Try the few tests that failed in the last run once more, one after the other with nothing beside them.

Twelve thousand tests, with servers of a dozen kinds on two cores, meet a race now and then. What passes alone
is named at the end, and is to be looked at all the same. Ends as pytest does.
"""

import json
import subprocess
import sys
from pathlib import Path

MOST = 3  # more are no accident
FAILED = Path(".pytest_cache/v/cache/lastfailed")


def main() -> int:
    """Do so, and return the exit code."""
    names = list(json.loads(FAILED.read_text())) if FAILED.exists() else []
    if not 0 < len(names) <= MOST:
        print(f"{len(names)} tests failed: none is tried again (1 to {MOST} are)")
        return 1
    code = subprocess.run([sys.executable, "-m", "pytest", "-n", "0", *names], check=False).returncode
    if code == 0:
        print("FLAKY: failed beside others, and passed alone; find out why:", *names, sep="\n  ")
    return code


if __name__ == "__main__":
    sys.exit(main())
