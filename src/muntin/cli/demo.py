"""``muntin demo``: hundreds of queries over a live stream, and what sharing them saves."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Container, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from muntin.cli.files import SIGNALLED, FailedRunError
from muntin.cli.run import quiet_session, starting
from muntin.cli.screen.signals import Signals

if TYPE_CHECKING:
    import pyarrow as pa

    from muntin.cli.demo_measure import DemoQuery
    from muntin.cli.screen.screen import Screen
    from muntin.pipelines import PipelineRun

RATE = 5000  # rows per second
SYMBOLS = 8
_NAP = 0.1  # seconds
_PATIENCE = 30  # seconds for the first results of queries that joined, on a busy machine
_PLAN_LINES = 7


def demo(
    queries: Annotated[int, typer.Option(min=4, max=4096, help="How many queries.")] = 256,
    seconds: Annotated[
        int, typer.Option(min=3, max=3600, help="How long to watch the stream.")
    ] = 25,
    seed: Annotated[int, typer.Option(min=0, help="The same seed makes the same trades.")] = 7,
) -> None:
    """Run hundreds of queries over synthetic trades on Spark, and measure what sharing saves.

    Two queries join while the stream runs, and one leaves. It takes about a minute. Example:
    muntin demo --queries 64 --seconds 10
    """
    # The command line starts without these.
    from muntin.cli.demo_measure import (  # noqa: PLC0415
        draw,
        measure,
        report,
    )
    from muntin.cli.screen.demo import make_demo_screen  # noqa: PLC0415
    from muntin.spark import stop  # noqa: PLC0415

    console = Console(highlight=False)
    drawn = draw(queries, seed)
    screen = make_demo_screen(console)
    console.print(f"[bold]{queries:,} window queries over one stream of trades, in one pass[/bold]")
    console.print(starting(), style="dim")
    with Signals() as signals, tempfile.TemporaryDirectory(prefix="muntin-demo-") as folder:
        spark = quiet_session({})
        signals.install()
        try:
            _stream(spark, Path(folder), drawn, seconds, seed, screen, signals, console)
            if not signals.received:
                rows = min(max(seconds * 20_000, 100_000), 1_000_000)
                with console.status("measuring ..."):
                    measured = measure(spark, Path(folder), drawn, rows, seed)
                report(console, measured)
        finally:
            stop(spark)
    if signals.received:
        raise typer.Exit(SIGNALLED + signals.received)


def _stream(
    spark: Any,
    folder: Path,
    drawn: Sequence[DemoQuery],
    seconds: int,
    seed: int,
    screen: Screen,
    signals: Signals,
    console: Console,
) -> None:
    from muntin import pipelines, sinks  # noqa: PLC0415 - as above

    options = f"rows_per_second = {RATE}, symbols = {SYMBOLS}, seed = {seed}"
    stream = f"CREATE STREAM trades WITH (format = 'rate', {options});\n"
    pipeline = pipelines.read(stream + ";\n".join(query.sql() for query in drawn))
    answered: set[str] = set()

    def take(batch: int, query: str, table: pa.Table) -> None:
        screen.results(batch, query, table)
        answered.add(query)

    try:
        with pipelines.run(
            pipeline, folder / "checkpoint", session=spark, screen=sinks.callback(take)
        ) as running:
            with screen.shown(running):
                _watch(running, seconds, screen, signals, answered)
            _show_plan(running, console)
    except Exception as error:
        raise FailedRunError(str(error) or type(error).__name__) from error


def _watch(
    running: PipelineRun, seconds: int, screen: Screen, signals: Signals, answered: Container[str]
) -> None:
    """Show the stream for some seconds; queries join after a third, and one leaves after two.

    It goes on for a while until those that joined are ``answered``.
    """
    begun: float | None = None
    joined: list[str] = []
    changes = [lambda: _join(running, joined), lambda: _leave(running)]
    while not signals.received and not running.poll():
        screen.tick(running)
        time.sleep(_NAP)
        # The first batch with rows brings compiled code into the workers.
        if begun is None and running.progress()["trades"].batch_rows:
            begun = time.monotonic()
        passed = 0.0 if begun is None else time.monotonic() - begun
        if changes and passed > seconds * (3 - len(changes)) / 3:
            screen.say(changes.pop(0)())
        is_over = passed > seconds and all(name in answered for name in joined)
        if (is_over and not changes) or passed > seconds + _PATIENCE:
            break
    screen.finish(running, going_on=False)


def _join(running: PipelineRun, joined: list[str]) -> str:
    from muntin.cli.demo_measure import JOINING  # noqa: PLC0415 - as above

    joined += running.add(JOINING)
    return f"{' and '.join(joined)} join the running stream; nothing is restarted"


def _leave(running: PipelineRun) -> str:
    name = running.queries()["trades"][0].name
    running.drop(name)
    return f"{name} leaves it"


def _show_plan(running: PipelineRun, console: Console) -> None:
    lines = str(running.plan("trades")).splitlines()
    console.print("\n[bold]What they share[/bold]")
    # The head says what sharing saves, at its end: it is never cut.
    console.print(lines[0], markup=False)
    for line in lines[1:_PLAN_LINES]:
        console.print(line, markup=False, no_wrap=True, overflow="ellipsis")
    if len(lines) > _PLAN_LINES:
        console.print(f"... lines left out: {len(lines) - _PLAN_LINES:,}", style="dim")
