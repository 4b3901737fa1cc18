"""What commands over SQL files have in common."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from muntin.errors import MuntinError

if TYPE_CHECKING:
    from muntin.pipelines import Pipeline

File: TypeAlias = Annotated[Path, typer.Argument(help="The SQL file.", show_default=False)]
Settings: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="A value for ${NAME} in options; may be repeated."
    ),
]


class Output(StrEnum):
    """What a command prints for people, or for machines."""

    TEXT = "text"
    JSON = "json"


def read_file(file: Path, settings: Sequence[str] | None) -> Pipeline:
    """The pipeline of a SQL file."""
    from muntin import pipelines  # noqa: PLC0415 - commands that read no file start without it
    from muntin.pipelines.options import parse_settings  # noqa: PLC0415

    return pipelines.read(file, parse_settings(settings or ()))


BAD_INPUT = 1
RUN_FAILED = 3
# As shells have it for a process that a signal ended: 130 after Ctrl-C, 143 after SIGTERM.
SIGNALLED = 128


class FailedRunError(MuntinError):
    """A run that had started, and came to an end it was not asked for."""
