"""Every command the server knows, by name; the functions stand in a file per topic."""

from mpx.endpoints.ftp.wire import reply_line
from mpx.serve import commands_login, commands_names, commands_transfer
from mpx.serve.session import Command, Session


def _help(_: Session, __: str) -> bytes:
    names = sorted(COMMANDS)
    rows = [" ".join(names[i : i + 12]) for i in range(0, len(names), 12)]
    return reply_line(214, "Commands:", *rows, "End.")


COMMANDS: dict[str, Command] = {
    "HELP": Command(_help, login=False),
    **commands_login.COMMANDS,
    **commands_names.COMMANDS,
    **commands_transfer.COMMANDS,
}
