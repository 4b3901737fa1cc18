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
    sys.stdout.write(_explained(pipeline, _chosen(pipeline, stream), format_).rstrip("\n") + "\n")


def _chosen(pipeline: Pipeline, name: str | None) -> tuple[StreamSpec, ...]:
    from muntin.errors import MuntinError  # noqa: PLC0415 - the command line starts without it

    streams = pipeline.streams if name is None else (pipeline.stream(name),)
    chosen = tuple(stream for stream in streams if pipeline.queries[stream.name])
    if not chosen:
        raise MuntinError("there are no queries to explain", hint="write CREATE QUERY ... AS ...")
    return chosen


def _explained(pipeline: Pipeline, streams: tuple[StreamSpec, ...], form: PlanFormat) -> str:
    plans = {stream.name: pipeline.plan(stream.name).explain(form.value) for stream in streams}
    if form == PlanFormat.JSON:
        return json.dumps({name: json.loads(plan) for name, plan in plans.items()}, indent=2)
    if len(plans) == 1:
        return next(iter(plans.values()))
    if form == PlanFormat.TEXT:
        return "\n".join(f"stream {name}\n{plan.rstrip()}\n" for name, plan in plans.items())
    from muntin.errors import MuntinError  # noqa: PLC0415 - as above

    names = ", ".join(plans)
    raise MuntinError(
        f"a {form.value} drawing shows one stream, and the file has {names}",
        hint=f"choose one with --stream {next(iter(plans))}",
    )
