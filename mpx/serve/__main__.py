"""`python -m mpx.serve DIR`."""

from mpx.serve.command import serve

serve(prog_name="mpx serve")
