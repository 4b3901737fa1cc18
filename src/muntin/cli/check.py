"""``muntin check``: everything wrong with a SQL file, without running it."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from muntin.cli.files import File, Output, Settings, read_file
from muntin.display import count

if TYPE_CHECKING:
    from muntin.pipelines import Pipeline


def check(
    file: File,
    settings: Settings = None,
    format_: Annotated[Output, typer.Option("--format", help="text or json.")] = Output.TEXT,
) -> None:
    """Say everything that is wrong with a SQL file, and where; nothing is run.

    Ends with 0 if nothing is, and with 1 otherwise; files that are not there yet are only noted.
    Example: muntin check trades.sql --set day=mon
    """
    from muntin.pipelines import PipelineError  # noqa: PLC0415 - the command line starts without it

    try:
        pipeline = read_file(file, settings)
    except PipelineError as error:
        found = {"file": str(file), "ok": False, "problems": [asdict(p) for p in error.problems]}
        summary = f"{error}\n{count(len(error.problems), 'problem')}"
        sys.stdout.write(f"{_text(found) if format_ == Output.JSON else summary}\n")
        raise typer.Exit(1) from None
    text = _text(_model(file, pipeline)) if format_ == Output.JSON else _summary(file, pipeline)
    sys.stdout.write(f"{text}\n")


def _text(found: dict[str, Any]) -> str:
    return json.dumps(found, indent=2, ensure_ascii=False)


def _summary(file: Path, pipeline: Pipeline) -> str:
    counts = {
        "stream": len(pipeline.streams),
        "table": len(pipeline.tables),
        "query": sum(map(len, pipeline.queries.values())) + len(pipeline.rows),
        "keep": sum(map(len, pipeline.keeps.values())),
        "sink": len(pipeline.sinks),
    }
    words = [count(number, noun) for noun, number in counts.items() if number]
    lines = [f"{file}: {', '.join(words)}, nothing wrong"]
    return "\n".join([*lines, *(f"note: {note['message']}" for note in _notes(pipeline))])


def _notes(pipeline: Pipeline) -> list[dict[str, Any]]:
    """What is sound, but may not be meant: files that are read, and may be made later."""
    from muntin.pipelines.sources import has_files  # noqa: PLC0415 - as above
    from muntin.queries.source import printable  # noqa: PLC0415

    read = [(stream.path, stream.place) for stream in pipeline.streams]
    read += [(table.path, table.place) for table in pipeline.tables]
    notes = []
    for path, place in read:
        if path is None or has_files(path):
            continue
        inside = Path(path).is_relative_to(pipeline.folder)
        shown = str(Path(path).relative_to(pipeline.folder)) if inside else path
        notes.append({"message": f"{printable(shown)} does not exist yet", "line": place.line})
    return notes


def _model(file: Path, pipeline: Pipeline) -> dict[str, Any]:
    """What the file holds; options are left out, since some are credentials."""
    streams = [
        {
            "name": stream.name,
            "format": stream.format,
            "line": stream.place.line,
            "columns": _columns(stream.schema),
            "declared": stream.declared,
            "time": stream.time,
            "queries": [
                {
                    "name": query.name,
                    "line": pipeline.places[query.name].line,
                    "sql": query.sql(),
                    "sinks": [sink.name for sink in pipeline.sinks_of(query.name)],
                }
                for query in pipeline.queries[stream.name]
            ],
            "keeps": [
                {"name": keep.name, "sql": keep.sql()}
                for keep in pipeline.keeps.get(stream.name, ())
            ],
        }
        for stream in pipeline.streams
    ]
    tables = [
        {
            "name": table.name,
            "format": table.format,
            "line": table.place.line,
            "columns": _columns(table.schema),
            "declared": table.declared,
        }
        for table in pipeline.tables
    ]
    sinks = [
        {"name": sink.name, "format": sink.format, "line": sink.place.line}
        for sink in pipeline.sinks
    ]
    rows = [
        {
            "name": query.name,
            "line": pipeline.places[query.name].line,
            "sql": query.sql(),
            "streams": list(query.streams),
            "sinks": [sink.name for sink in pipeline.sinks_of(query.name)],
        }
        for query in pipeline.rows
    ]
    model = {"streams": streams, "tables": tables, "sinks": sinks, "row_queries": rows}
    notes = _notes(pipeline)
    return {"file": str(file), "ok": True, "problems": [], "notes": notes, **model}


def _columns(schema: Any) -> dict[str, str]:
    from muntin.expressions.types import name_of  # noqa: PLC0415 - as above

    return {field.name: name_of(field.type) for field in schema}
