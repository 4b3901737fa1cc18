"""Orders and payments as two streams: what is paid, what is not, and who waits for whom.

Run it with `.venv/bin/python examples/orders.py`.
"""

import tempfile
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl

import muntin

MONDAY = datetime(2026, 3, 2, 9, 0)
QUERIES = """
CREATE QUERY paid AS
  SELECT o.id, p.amount, p.paid_at
  FROM orders [RANGE '30 minutes'] o JOIN payments [RANGE '30 minutes'] p ON o.id = p.order_id
  WHERE p.paid_at >= o.ts;

CREATE QUERY unpaid AS
  SELECT o.id, o.total
  FROM orders [RANGE '30 minutes'] o
  LEFT ANTI JOIN payments [RANGE '1 day'] p ON o.id = p.order_id AND p.amount >= o.total;

CREATE QUERY reminders AS
  SELECT o.id, o.total, p.amount
  FROM orders [RANGE '30 minutes'] o
  LEFT JOIN payments [RANGE '1 minute'] p ON o.id = p.order_id EMIT UNMATCHED
  WHERE p.amount IS NULL;

CREATE QUERY buyers AS
  SELECT DISTINCT buyer FROM orders [RANGE '30 minutes' SLIDE '30 minutes'];

CREATE QUERY turnover AS
  SELECT sum(amount) AS amount, count(*) AS n FROM payments [RANGE '30 minutes' SLIDE '30 minutes'];
"""

# The same as a table of the orders that are unpaid now: rows come and go.
UNPAID_NOW = """
CREATE QUERY unpaid_now WITH (output = 'changes') AS
  SELECT o.id, o.total
  FROM orders [RANGE '30 minutes'] o
  LEFT ANTI JOIN payments [RANGE '1 day'] p ON o.id = p.order_id AND p.amount >= o.total
"""


def minute(number: float) -> datetime:
    return MONDAY + timedelta(minutes=number)


def orders() -> pl.DataFrame:
    rows = [
        (minute(0), 1, "ann", 40.0),
        (minute(5), 2, "bob", 15.0),
        (minute(12), 3, "ann", 60.0),
        (minute(70), 4, "eve", 25.0),
    ]
    return pl.DataFrame(rows, schema=["ts", "id", "buyer", "total"], orient="row")


def payments() -> pl.DataFrame:
    rows = [
        (minute(3), 1, 40.0),
        (minute(20), 3, 10.0),
        (minute(24), 3, 60.0),
        (minute(75), 4, 25.0),
    ]
    return pl.DataFrame(rows, schema=["paid_at", "order_id", "amount"], orient="row")


def shown(name: str, frame: pl.DataFrame) -> None:
    if frame.is_empty():
        return
    print(f"\n{name}")
    for row in frame.sort(frame.columns[:3]).rows():
        words = [f"{each:%H:%M}" if isinstance(each, datetime) else str(each) for each in row]
        print("  " + "  ".join(words))


def bounded() -> None:
    """Everything at once: every row with its whole lifetime."""
    data = {"orders": orders(), "payments": payments()}
    times = {"orders": "ts", "payments": "paid_at"}
    results = muntin.aggregate(data, QUERIES, time=times)
    for name in results:
        shown(name, results[name])


def streamed() -> None:
    """The same as two streams, of which one falls behind."""
    columns = {"orders": orders(), "payments": payments()}
    times = {"orders": "ts", "payments": "paid_at"}
    stream = muntin.stream(QUERIES, columns, times, lateness="1 minute")
    found = stream.feed(orders(), "orders")
    print("\nall orders, no payments yet")
    print(f"  answers: {sum(len(frame) for frame in found.values())}")
    print(f"  {stream.progress().holder} holds the others back")
    for row in payments().iter_slices(1):
        found = stream.feed(row, "payments")
        print(f"\npayment at {row['paid_at'][0]:%H:%M}")
        for name in found:
            shown(name, found[name])


def live(path: Path) -> None:
    """Unpaid orders as a table of a DuckDB file, after every row that comes."""
    columns = {"orders": orders(), "payments": payments()}
    times = {"orders": "ts", "payments": "paid_at"}
    stream = muntin.stream(UNPAID_NOW, columns, times)
    sink = muntin.sinks.duckdb(path, live=True)
    arrivals = [("orders", row) for row in orders().iter_slices(1)]
    arrivals += [("payments", row) for row in payments().iter_slices(1)]
    arrivals.sort(key=lambda each: each[1][times[each[0]]][0])
    for batch, (name, row) in enumerate(arrivals):
        found = stream.feed(row, name)["unpaid_now"]
        reached = stream.reached()
        if not reached:
            continue
        sink.reach(reached)
        sink.deliver(batch, {"unpaid_now": found.to_arrow()})
        held = sink.table("unpaid_now")["id"].to_pylist()
        now, below = row[times[name]][0], reached["unpaid_now"].as_py()
        print(f"  {now:%H:%M}  {name:8}  W {below:%H:%M}  unpaid: {sorted(held)}")


if __name__ == "__main__":
    bounded()
    streamed()
    print("\nunpaid orders in a live table")
    with tempfile.TemporaryDirectory() as folder:
        live(Path(folder) / "orders.duckdb")
