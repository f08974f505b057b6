"""Labs for the tests of this folder; without root each of them is skipped with a line that says so."""

pytest_plugins = ["mpx_lab.fixtures"]
