"""Every command the server knows, by name; the functions stand in a file per topic."""

from mpx.serve import commands_login, commands_names, commands_transfer
from mpx.serve.session import Command

COMMANDS: dict[str, Command] = {
    **commands_login.COMMANDS,
    **commands_names.COMMANDS,
    **commands_transfer.COMMANDS,
}
