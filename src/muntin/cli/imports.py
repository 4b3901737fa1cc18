"""``muntin import``: a file of Spark's or Flink's window queries, as a Muntin file."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from muntin.cli.files import Output

if TYPE_CHECKING:
    from muntin.pipelines.importers import Imported

# What could not be carried over in whole ends with this, so that scripts can tell.
NOT_ALL = 3


class ForeignDialect(StrEnum):
    """Whose SQL a file holds."""

    AUTO = "auto"
    SPARK = "spark"
    FLINK = "flink"


def import_(
    file: Annotated[Path, typer.Argument(help="A file of Spark or Flink SQL.", show_default=False)],
    output: Annotated[
        Path | None,
        typer.Option(help="The Muntin file to write; the screen if not given.", show_default=False),
    ] = None,
    dialect: Annotated[
        ForeignDialect, typer.Option(help="spark or flink; auto tells them apart by their words.")
    ] = ForeignDialect.AUTO,
    format_: Annotated[
        Output, typer.Option("--format", help="The report of what was lost: text or json.")
    ] = Output.TEXT,
) -> None:
    """Turn window queries of Spark SQL or Flink SQL into a Muntin file.

    What cannot be carried over is said line by line, in the file and on stderr. Ends with 0 if
    all was, with 3 if some was not, and with 1 if nothing was. Only SQL is read, no Python.

    Example: muntin import job.sql --output trades.sql
    """
    from muntin.pipelines.importers import import_sql  # noqa: PLC0415 - commands start without it

    _check_sql(file, output)
    done = import_sql(file, dialect.value)
    if output is None:
        sys.stdout.write(done.text)
    else:
        _write(output, done.text)
    report = _model(done, output) if format_ == Output.JSON else _summary(done, output)
    sys.stderr.write(f"{report}\n")
    if done.lost:
        raise typer.Exit(NOT_ALL)


def _check_sql(file: Path, output: Path | None) -> None:
    from muntin.errors import MuntinError  # noqa: PLC0415 - as above

    if file.suffix in (".py", ".ipynb", ".scala", ".java", ".jar"):
        hint = "put its queries into a .sql file; what spark.sql(...) holds is enough"
        raise MuntinError(f"{file} is a program, and only SQL is imported", hint=hint)
    if output is not None and output.exists() and file.exists() and output.samefile(file):
        hint = "choose another name for the Muntin file"
        raise MuntinError(f"{output} is the file to import", hint=hint)


def _write(output: Path, text: str) -> None:
    from muntin.errors import MuntinError  # noqa: PLC0415 - as above

    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        reason = error.strerror or str(error)
        hint = "check --output: its folder must be there"
        raise MuntinError(f"cannot write {output}: {reason}", hint=hint) from None


def _summary(done: Imported, output: Path | None) -> str:
    from muntin.pipelines.model import located  # noqa: PLC0415 - as above

    lines = [located(note.said, done.file) for note in done.notes]
    counts = _counts(done)
    queries, lost = counts["queries"], len(done.lost)
    carried = f"{queries} {'query' if queries == 1 else 'queries'} carried over"
    what = f"{lost} thing{'s' * (lost != 1)} could not be" if lost else "nothing lost"
    target = "" if output is None else f" to {output}"
    return "\n".join([*lines, f"{done.file}: {carried}{target}, {what}"])


def _counts(done: Imported) -> dict[str, int]:
    pipeline = done.pipeline
    return {
        "streams": len(pipeline.streams),
        "tables": len(pipeline.tables),
        "queries": sum(map(len, pipeline.queries.values())) + len(pipeline.rows),
        "sinks": len(pipeline.sinks),
    }


def _model(done: Imported, output: Path | None) -> str:
    notes: list[dict[str, Any]] = [
        {**asdict(note.problem), "lost": note.lost} for note in done.notes
    ]
    model = {
        "file": done.file,
        "output": None if output is None else str(output),
        "dialect": done.dialect,
        "ok": not done.lost,
        **_counts(done),
        "notes": notes,
    }
    return json.dumps(model, indent=2, ensure_ascii=False)
