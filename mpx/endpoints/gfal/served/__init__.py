"""The program that has gfal2: run by the system's Python, as nobody else has gfal2's binding."""
