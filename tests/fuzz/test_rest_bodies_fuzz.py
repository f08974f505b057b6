"""Whatever a caller sends as a body is answered or refused."""

import rest_bodies
from mutations import fuzz


def test_bodies_of_requests() -> None:
    fuzz(rest_bodies.fuzz_one, rest_bodies.CORPUS, 1000)
