"""``muntin explain``: what the queries of a SQL file share."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from muntin.cli.files import File, Settings, read_file

if TYPE_CHECKING:
    from muntin.pipelines import Pipeline, StreamSpec


class PlanFormat(StrEnum):
    """How a plan is shown."""

    TEXT = "text"
    JSON = "json"
    MERMAID = "mermaid"
    SVG = "svg"


def explain(
    file: File,
    settings: Settings = None,
    stream: Annotated[
        str | None, typer.Option(help="The stream to explain, if the file has several.")
    ] = None,
    format_: Annotated[
        PlanFormat, typer.Option("--format", help="text, json, mermaid or svg.")
    ] = PlanFormat.TEXT,
) -> None:
    """Show what the queries of a SQL file share, and what that saves; nothing is run.

    Example: muntin explain trades.sql --format svg > plan.svg
    """
    pipeline = read_file(file, settings)
    chosen = _chosen(pipeline, stream)
    explained = {each.name: pipeline.plan(each.name).explain(format_.value) for each in chosen}
    if format_ in (PlanFormat.TEXT, PlanFormat.JSON):
        explained = {
            name: _with_keeps(text, pipeline, name, format_) for name, text in explained.items()
        }
    rows = pipeline.row_plan().explain(format_.value) if pipeline.rows and stream is None else None
    sys.stdout.write(_explained(explained, rows, format_).rstrip("\n") + "\n")


def _chosen(pipeline: Pipeline, name: str | None) -> tuple[StreamSpec, ...]:
    from muntin.errors import MuntinError  # noqa: PLC0415 - the command line starts without it

    streams = pipeline.streams if name is None else (pipeline.stream(name),)
    chosen = tuple(stream for stream in streams if pipeline.queries[stream.name])
    if chosen or (name is None and pipeline.rows):
        return chosen
    reading = [
        each.name for each in pipeline.rows if any(one.name in each.streams for one in streams)
    ]
    if reading:
        raise MuntinError(
            f"stream {streams[0].name} is read by row queries only: {', '.join(reading)}",
            hint="leave out --stream, which leaves them out",
        )
    raise MuntinError("there are no queries to explain", hint="write CREATE QUERY ... AS ...")


def _with_keeps(text: str, pipeline: Pipeline, stream: str, form: PlanFormat) -> str:
    """The plan of a stream, and what is kept of it."""
    kept = pipeline.kept(stream)
    if not kept:
        return text
    if form == PlanFormat.JSON:
        listed = [
            {"name": each.name, "sql": str(each.keep), "entry_bytes": each.entry_bytes()}
            for each in kept
        ]
        return json.dumps({**json.loads(text), "keeps": listed})
    return "\n".join([text.rstrip("\n"), *(each.explain() for each in kept)]) + "\n"


def _explained(plans: dict[str, str], rows: str | None, form: PlanFormat) -> str:
    """The plan of each stream, and that of row queries, which may read several."""
    if form == PlanFormat.JSON:
        found = {name: json.loads(plan) for name, plan in plans.items()}
        # No stream has a name with a space in it.
        found |= {} if rows is None else {"row queries": json.loads(rows)}
        return json.dumps(found, indent=2)
    if len(plans) + (rows is not None) == 1:
        return rows or next(iter(plans.values()))
    if form == PlanFormat.TEXT:
        parts = [f"stream {name}\n{plan.rstrip()}\n" for name, plan in plans.items()]
        return "\n".join(parts if rows is None else [*parts, f"row queries\n{rows.rstrip()}\n"])
    from muntin.errors import MuntinError  # noqa: PLC0415 - as above

    names = ", ".join(plans)
    raise MuntinError(
        f"a {form.value} drawing shows one stream, and the file has {names}",
        hint=f"choose one with --stream {next(iter(plans))}",
    )
