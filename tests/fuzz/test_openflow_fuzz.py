"""Whatever a switch sends is read, refused or ends its connection, and nothing else."""

import openflow
from mutations import fuzz


def test_what_switches_send() -> None:
    fuzz(openflow.fuzz_one, openflow.CORPUS, 3000)
