"""The command line. Every subcommand imports its code only when it is called."""

import contextlib
import sys
from typing import NoReturn

import click

from mpx._version import __version__
from mpx.commands.output import complain, protect
from mpx.engine.stop import is_shortage, unexpected
from mpx.errors import Interrupted, MpxError
from mpx.signals import raise_again
from mpx.text import shown


class _Commands(click.Group):
    """Finds subcommands by name; their modules are imported when they are used or asked for help."""

    MODULES = {
        "controller": ("mpx_controller.command", "controller", "Steer a network of OpenFlow switches."),
        "copy": ("mpx.commands.copy", "copy_command", "Copy files and folders."),
        "explain": ("mpx.commands.explain", "explain_command", "Tell what happened in a copy, and draw it."),
        "globus": ("mpx.commands.globus", "globus", "Log in to Globus, for globus://."),
        "history": ("mpx.commands.history", "history_command", "Show what copies remember of paths."),
        "lab": ("mpx_lab.lab_command", "lab", "Emulate a wide-area network on this machine."),
        "list": ("mpx.commands.listing", "list_command", "List a folder of a server or of this host."),
        "probe": ("mpx.commands.probe", "probe_command", "Measure the round-trip time to a host."),
        "serve": ("mpx.serve.command", "serve", "Serve a folder to GridFTP and FTP clients."),
        "token": ("mpx.commands.token", "token", "Make and keep tokens for mpx serve."),
        "train": (
            "mpx_train.train_command",
            "train_command",
            "Train the model that recognises the background.",
        ),
        "unfinished": ("mpx.commands.listing", "unfinished_command", "Show copies interrupted here."),
    }

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return sorted(self.MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in self.MODULES:
            return None
        import importlib

        module, name, _ = self.MODULES[cmd_name]
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, _, text) in sorted(self.MODULES.items())])


@click.group(
    cls=_Commands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, "--version", prog_name="mpx", message="%(prog)s %(version)s")
@click.pass_context
def cli(context: click.Context) -> None:
    """Move bulk data over wide-area networks as fast as the network allows, without manual tuning."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
        context.exit(2)
    if context.invoked_subcommand in CLEAN_UP:
        raise_again()


CLEAN_UP = ("controller", "lab", "train")  # when they are interrupted
TELL_OF_WORK = ("copy", "serve")  # and go on where nobody can read that
LOG = (*TELL_OF_WORK, "controller")  # and go on where nobody does read it


def main() -> NoReturn:
    """Run the command line; every failure is one clear line on stderr and an exit code of its own."""
    command = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
    protect(is_product=command not in TELL_OF_WORK, waits=command not in LOG or "--dry-run" in sys.argv)
    try:
        code = cli.main(prog_name="mpx", standalone_mode=False)
        sys.stdout.flush()
        sys.exit(code if isinstance(code, int) else 0)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.UsageError as error:
        where = f"; see {error.ctx.command_path} --help" if error.ctx else ""
        fail(f"{error.format_message().rstrip('.')}{where}", 2)
    except click.ClickException as error:
        fail(error.format_message(), 2)
    except MpxError as error:
        fail(shown(str(error)), error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        fail("interrupted", Interrupted.exit_code)
    except BrokenPipeError:
        sys.exit(1)
    except Exception as error:
        import os

        if os.environ.get("MPX_DEBUG"):
            raise
        if is_shortage(error):
            fail(str(unexpected(error)), 1)
        fail(
            f"unexpected {type(error).__name__}: {error}; this is a fault of mpx: "
            "set MPX_DEBUG=1, run it again and report what it prints",
            1,
        )


def fail(message: str, exit_code: int) -> NoReturn:
    """Print one line on stderr, the last, and exit with that code even where stdout cannot take the rest."""
    with contextlib.suppress(MpxError, OSError):
        sys.stdout.flush()
    complain(message)
    sys.exit(exit_code)
