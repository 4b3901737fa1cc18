"""The command ``muntin``: one function per command, each in a file of its own."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

from muntin import __version__
from muntin.cli.bench import bench
from muntin.cli.check import check
from muntin.cli.control import add, ask, drop, list_
from muntin.cli.demo import demo
from muntin.cli.doctor import doctor
from muntin.cli.explain import explain
from muntin.cli.files import BAD_INPUT, RUN_FAILED, FailedRunError
from muntin.cli.imports import import_
from muntin.cli.init import init
from muntin.cli.run import run
from muntin.errors import MuntinError


def _plain_flags(parameters: list[Any]) -> list[Any]:
    """Show `--once`, not `--once <bool>`: a flag takes no value."""
    for each in parameters:
        if getattr(each, "is_flag", False) and each.metavar is None:
            each.metavar = ""
    return parameters


class Group(TyperGroup):
    """The command ``muntin`` itself."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Its options, flags without a type."""
        return _plain_flags(super().get_params(ctx))


class Command(TyperCommand):
    """A command of ``muntin``."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Arguments and options, flags without a type."""
        return _plain_flags(super().get_params(ctx))


class BenchCommand(Command):
    """``muntin bench``, whose help lists the benchmarks there are."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Imports benchmarks only when help is asked for."""
        if find_spec("muntin_bench") is not None:
            self._list_benchmarks()
        super().format_help(ctx, formatter)

    def _list_benchmarks(self) -> None:
        from muntin_bench import ABOUT  # noqa: PLC0415 - the command line starts without it

        width = max(map(len, ABOUT))
        listed = "\n".join(f"{name:<{width}}  {about}" for name, about in ABOUT.items())
        if self.help and listed not in self.help:
            told, _, example = self.help.partition("\n\nExample:")
            self.help = f"{told}\n\n{listed}\n\nExample:{example}"


# Commands import what they need when they are called, so that all of them start fast.
COMMANDS: dict[str, Callable[..., None]] = {
    "demo": demo,
    "init": init,
    "check": check,
    "explain": explain,
    "run": run,
    "add": add,
    "drop": drop,
    "list": list_,
    "ask": ask,
    "import": import_,
    "bench": bench,
    "doctor": doctor,
}

app = typer.Typer(
    help="Hundreds of sliding-window queries over one stream, in one shared pass.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    cls=Group,
)
for name, command in COMMANDS.items():
    app.command(name, cls=BenchCommand if name == "bench" else Command)(command)


def _print_version(wanted: bool) -> None:
    if wanted:
        Console().print(f"muntin {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the stack trace of an error.")
    ] = False,
) -> None:
    """Hundreds of sliding-window queries over one stream, in one shared pass."""


def main() -> None:
    """Run the command; mistakes end in a message and a code, not in a stack trace."""
    try:
        app()
    except BrokenPipeError:
        # The reader of the output has seen enough, as with `| head`.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
    except Exception as error:
        if "--debug" in sys.argv:
            raise
        _say(str(error) if isinstance(error, MuntinError) else _surprise(error))
        raise SystemExit(RUN_FAILED if isinstance(error, FailedRunError) else BAD_INPUT) from None


def _say(message: str) -> None:
    text = Text.assemble(("error:", "red"), " ", message)
    Console(stderr=True).print(text, highlight=False, soft_wrap=True)


def _surprise(error: Exception) -> str:
    reason = str(error).strip() or "no reason given"
    return (
        f"{type(error).__name__}: {reason}\n"
        "Hint: this is a bug in Muntin; muntin --debug and the same command show where it is"
    )


if __name__ == "__main__":
    main()
