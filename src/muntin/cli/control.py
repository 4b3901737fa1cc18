"""``muntin add``, ``drop``, ``list`` and ``ask``: a pipeline that runs elsewhere."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from muntin.cli.files import Output
from muntin.display import count

Checkpoint = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="The checkpoint of the muntin run; that in .muntin if only one runs."
    ),
]
Format = Annotated[Output, typer.Option("--format", help="text or json.")]


def add(
    sql: Annotated[
        str,
        typer.Argument(help="CREATE QUERY ... or CREATE KEEP ..., or a .sql file with some."),
    ],
    checkpoint: Checkpoint = None,
    format_: Format = Output.TEXT,
) -> None:
    """Let queries join a running pipeline, from its next batch on; they stay after a restart.

    Example: muntin add spikes.sql, or muntin add "CREATE QUERY spikes AS SELECT ..."
    """
    from muntin.queries.spec import read_text  # noqa: PLC0415 - the command line starts without it

    answer = _ask(checkpoint, {"command": "add", "sql": read_text(sql)})
    _show(answer, "\n".join(_joined(answer)) or "done", format_)


def drop(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="The queries.")],
    checkpoint: Checkpoint = None,
    format_: Format = Output.TEXT,
) -> None:
    """Let queries leave a running pipeline, from its next batch on.

    Example: muntin drop spikes high_volume --checkpoint ck
    """
    answers = [_ask(checkpoint, {"command": "drop", "name": name}) for name in names]
    dropped = [answer["dropped"] for answer in answers]
    _show({"dropped": dropped}, f"{', '.join(dropped)} left", format_)


def list_(checkpoint: Checkpoint = None, format_: Format = Output.TEXT) -> None:
    """Show the streams and queries of a running pipeline.

    Example: muntin list --format json
    """
    answer = _ask(checkpoint, {"command": "list"})
    _show(answer, "\n".join(_listed(answer)), format_)


def ask(
    sql: Annotated[
        str,
        typer.Argument(help="SELECT ... FROM stream [RANGE ...], answered from what is kept."),
    ],
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="The checkpoint of a run, which is read as it is: it may run or not.",
        ),
    ] = None,
    isolation: Annotated[str, typer.Option(help="lws, the newest version, or ws.")] = "lws",
    timeout: Annotated[str, typer.Option(help="How long it may take.")] = "1 second",
    max_rows: Annotated[int, typer.Option(help="How many rows it may give.")] = 100_000,
    format_: Format = Output.TEXT,
) -> None:
    """Answer a question from what a running pipeline keeps, or from a checkpoint.

    Example: muntin ask "SELECT max(price) AS high FROM trades [RANGE '7 minutes']"
    """
    from muntin.pipelines.control import shown_answer  # noqa: PLC0415 - as above

    options = {"isolation": isolation, "timeout": timeout, "max_rows": max_rows}
    if checkpoint is None:
        answer = _ask(None, {"command": "ask", "sql": sql, **options})
    else:
        from muntin.spark.streaming.checkpoint.asks import asking_of  # noqa: PLC0415 - as above

        found = asking_of(_run_folder(checkpoint, sql)).ask(sql, **options)  # type: ignore[arg-type]
        answer = shown_answer(found)
    _show(answer, "\n".join(_answered(answer)), format_)


def _run_folder(checkpoint: Path, sql: str) -> Path:
    """The checkpoint of a run; that of muntin run has one for each stream, or several together."""
    from muntin.errors import did_you_mean  # noqa: PLC0415 - as above
    from muntin.pipelines.control import ControlError  # noqa: PLC0415
    from muntin.pipelines.runner import STREAMS  # noqa: PLC0415
    from muntin.queries.asking.questions import source_of  # noqa: PLC0415

    folders = sorted(path.parent for path in (checkpoint / STREAMS).glob("*/muntin.json"))
    if not folders:
        return checkpoint
    homes = {name: path for path in folders for name in path.name.split("+")}
    source = source_of(sql)
    if source.lower() not in homes:
        hint = did_you_mean(source, homes)
        raise ControlError(f"the pipeline in {checkpoint} has no stream {source}", hint=hint)
    return homes[source.lower()]


def _answered(answer: dict[str, Any]) -> list[str]:
    """The rows as a table, and a line that says what they are worth."""
    table = [answer["columns"]]
    table += [["NULL" if v is None else str(v) for v in row.values()] for row in answer["answer"]]
    widths = [max(len(row[place]) for row in table) for place in range(len(table[0]))]
    lines = ["  ".join(word.rjust(w) for word, w in zip(row, widths, strict=True)) for row in table]
    worth = "exact" if answer["exact"] else "bounds"
    covers = "nothing" if answer["covers"] is None else " to ".join(answer["covers"])
    took = f"{answer['milliseconds']:.1f} ms"
    facts = [
        f"{worth} for {covers}",
        f"as of {answer['latest']} (W {answer['watermark']})",
        f"batch {answer['batch']}",
        count(answer["rows"], "row"),
        answer["source"],
        answer["isolation"],
        took,
    ]
    return [*lines, ", ".join(facts)]


def _ask(checkpoint: Path | None, request: dict[str, Any]) -> dict[str, Any]:
    from muntin.pipelines.control import ask  # noqa: PLC0415 - as above

    return ask(_found() if checkpoint is None else checkpoint, request)


def _found() -> Path:
    """The one checkpoint in .muntin that something runs with."""
    from muntin.pipelines.control import ControlError, is_running, socket_path  # noqa: PLC0415

    known = sorted(path for path in Path(".muntin").glob("*") if socket_path(path).exists())
    running = [path for path in known if is_running(path)]
    if len(running) == 1:
        return running[0]
    if running:
        names = ", ".join(str(path) for path in running)
        raise ControlError(
            f"several pipelines run here: {names}", hint="name one: --checkpoint DIR"
        )
    raise ControlError(
        "nothing runs in this folder",
        hint="start it with muntin run FILE.sql, or name its folder with --checkpoint",
    )


def _show(answer: dict[str, Any], text: str, form: Output) -> None:
    shown = json.dumps(answer, indent=2, ensure_ascii=False) if form == Output.JSON else text
    sys.stdout.write(f"{shown}\n")


def _joined(answer: dict[str, Any]) -> list[str]:
    replaced = answer["replaced"]
    names = ", ".join(name for name in answer["added"] if name not in replaced)
    return [f"{names} joined"] * bool(names) + [
        f"{name} replaced: the one before answers nothing more, not even its open windows; this "
        f"one answers windows that start after {'what has been read' if seen is None else seen}, "
        "and earlier ones where all their rows are kept"
        for name, seen in replaced.items()
    ]


def _kept(keep: dict[str, Any]) -> str:
    """A keep on a line: what it takes."""
    rate = keep.get("entries_per_row")
    rated = "" if rate is None else f", {rate:.2f} entries per row"
    failed = f", {count(keep['errors'], 'failed value')}" if keep["errors"] else ""
    held = f"{count(keep['entries'], 'entry')}, {keep['bytes']:,} bytes"
    return f"  keep {keep['name']}: {held}{rated}{failed}"


def _listed(answer: dict[str, Any]) -> list[str]:
    lines = []
    for stream in answer["streams"]:
        queries = count(len(stream["queries"]), "query")
        words = f"{stream['late_rows']:,} late, {stream['bad_rows']:,} bad"
        rows = count(stream["rows"], "row")
        lines.append(f"stream {stream['name']}: {queries}, {rows}, {words}")
        width = max((len(query["name"]) for query in stream["queries"]), default=0)
        for query in stream["queries"]:
            where = ", ".join(query["sinks"]) or "screen"
            results = count(query["results"], "result")
            lines.append(f"  {query['name']:<{width}}  {results:>16}  to {where}")
        lines += [_kept(each) for each in stream.get("keeps", ())]
    return lines
