"""``muntin demo``: a handful of queries over made-up trades."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

import muntin

if TYPE_CHECKING:
    import pyarrow as pa

QUERIES = """\
CREATE QUERY turnover AS          -- total value, as in Flink
  SELECT sum(price * vol) AS value, count(*) AS trades
  FROM HOP(TABLE trades, DESCRIPTOR(ts), INTERVAL '5' MINUTE,
           INTERVAL '15' MINUTE)
  GROUP BY window_start, window_end;

CREATE QUERY big_trades AS        -- large trades only
  SELECT sum(price * vol) AS value, avg(vol) AS size
  FROM trades [RANGE '12 minutes' SLIDE '5 minutes'] WHERE vol > 5000;

CREATE QUERY vwap AS              -- volume-weighted price by symbol
  SELECT symbol, sum(price * vol) / sum(vol) AS vwap
  FROM trades [RANGE '15 minutes' SLIDE '15 minutes'] GROUP BY symbol;

CREATE QUERY volatility AS        -- as in Spark
  SELECT symbol, avg(price) AS mean, stddev(price) AS deviation
  FROM trades GROUP BY window(ts, '30 minutes', '10 minutes'), symbol
  HAVING count(*) > 100;

CREATE QUERY swings AS            -- windows of rows instead of time
  SELECT symbol, max(price) - min(price) AS swing, last(price) AS latest
  FROM trades [ROWS 50000 SLIDE 50000] GROUP BY symbol;
"""
_SHOWN = 5


def demo(
    rows: Annotated[int, typer.Option(min=1, help="How many trades to make up.")] = 200_000,
    seed: Annotated[int, typer.Option(help="The same seed makes the same trades.")] = 7,
) -> None:
    """Answer a handful of queries over made-up trades, and show their plan and results.

    Example: muntin demo --rows 1000000
    """
    show_demo(Console(), rows, seed)


def show_demo(console: Console, rows: int, seed: int) -> None:
    """Make up trades, answer the queries in one call, and print everything."""
    # The command line starts without these.
    from rich.syntax import Syntax  # noqa: PLC0415

    from muntin.testing import trades  # noqa: PLC0415

    data = trades(rows, seed=seed)
    console.print(f"[bold]{rows:,} trades of one hour, five queries, one pass[/bold]\n")
    console.print(Syntax(QUERIES, "sql", theme="ansi_dark", background_color="default"))
    begin = time.perf_counter()
    with console.status("compiling and running ..."):
        results = muntin.aggregate(data, QUERIES, time="ts")
    seconds = time.perf_counter() - begin
    console.print("[bold]What is shared[/bold]")
    plan = str(results.plan)
    console.print(plan, highlight=False, markup=False, soft_wrap=True)
    for name in results:
        console.print()
        console.print(_table(name, results[name]))
    console.print(f"\n{seconds:.2f} s, compilation included on the first run")


def _table(name: str, result: pa.Table) -> Table:
    import pyarrow as pa  # noqa: PLC0415 - as above

    shown = Table(title=f"{name}: {result.num_rows:,} rows", title_justify="left")
    for field in result.schema:
        numeric = pa.types.is_floating(field.type) or pa.types.is_integer(field.type)
        shown.add_column(field.name, justify="right" if numeric else "left")
    for row in result.slice(0, _SHOWN).to_pylist():
        shown.add_row(*(_text(value) for value in row.values()))
    if result.num_rows > _SHOWN:
        shown.add_row(*("…" for _ in result.schema))
    return shown


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.4f}"
    return f"{value:%H:%M:%S}" if hasattr(value, "hour") else str(value)
