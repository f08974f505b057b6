"""What somebody else may have put where a file is to be; `victim` is a file that must not be touched."""

import os
from pathlib import Path


def a_link(name: Path, victim: Path) -> None:
    name.symlink_to(victim)


def a_hard_link(name: Path, victim: Path) -> None:
    name.hardlink_to(victim)


def a_fifo(name: Path, _: Path) -> None:
    os.mkfifo(name)


def a_folder(name: Path, _: Path) -> None:
    name.mkdir()
