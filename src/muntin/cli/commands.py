"""Commands whose help people can read: flags without a type, and lists that are made when asked."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup


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
        from muntin.bench import ABOUT  # noqa: PLC0415 - the command line starts without it

        width = max(map(len, ABOUT))
        listed = "\n".join(f"{name:<{width}}  {about}" for name, about in ABOUT.items())
        if self.help and listed not in self.help:
            told, _, example = self.help.partition("\n\nExample:")
            self.help = f"{told}\n\n{listed}\n\nExample:{example}"
        super().format_help(ctx, formatter)
