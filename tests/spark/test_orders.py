"""The orders example as a SQL file on Spark: killed, restarted, and its tables recomputed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import muntin
from muntin import pipelines
from quick_jvm import OPTION, VALUE

FILE = Path(__file__).parents[2] / "examples" / "orders.sql"
ORDERS = pa.schema(
    {"ts": pa.timestamp("us", "UTC"), "id": pa.int64(), "buyer": pa.string(), "total": pa.float64()}
)
PAYMENTS = pa.schema(
    {"paid_at": pa.timestamp("us", "UTC"), "order_id": pa.int64(), "amount": pa.float64()}
)
MINUTE = 60_000_000
BATCHES = 6


def arrivals() -> list[tuple[pa.Table, pa.Table]]:
    """Ten minutes each: an order every minute, and payments of some of them a bit later."""
    found = []
    for batch in range(BATCHES):
        ids = range(10 * batch, 10 * batch + 10)
        orders = {
            "ts": [each * MINUTE for each in ids],
            "id": list(ids),
            "buyer": ["ann"] * 10,
            "total": [float(each % 7) for each in ids],
        }
        paid = [each for each in ids if each % 3]
        payments = {
            "paid_at": [each * MINUTE + (each % 5) * MINUTE // 2 for each in paid],
            "order_id": paid,
            "amount": [float(each % 7) - each % 2 for each in paid],
        }
        found.append((pa.table(orders, schema=ORDERS), pa.table(payments, schema=PAYMENTS)))
    return found


def put(folder: Path, name: str, table: pa.Table) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, folder / f".{name}")
    (folder / f".{name}").rename(folder / f"{name}.parquet")


def rows(folder: Path, table: str) -> list[Any]:
    for _ in range(100):
        try:
            with duckdb.connect(str(folder / "orders.duckdb"), read_only=True) as connection:
                return connection.sql(f"SELECT * FROM {table} ORDER BY ALL").fetchall()
        except duckdb.Error:
            time.sleep(0.1)
    raise AssertionError(f"{table} cannot be read")


def command(folder: Path, *more: str) -> list[str]:
    run = [sys.executable, "-m", "muntin", "run", str(FILE), "--set", f"folder={folder}"]
    return [*run, "--checkpoint", str(folder / "ck"), "--conf", f"{OPTION}={VALUE}", *more]


def recomputed(
    given: list[tuple[pa.Table, pa.Table]],
) -> tuple[list[Any], list[Any]]:
    """Unpaid orders and pairs that are alive at W, by all rows in one process."""
    pipeline = pipelines.read(FILE, {"folder": "/nowhere"})
    columns = {"orders": ORDERS, "payments": PAYMENTS}
    times = {"orders": "ts", "payments": "paid_at"}
    stream = muntin.stream(list(pipeline.rows), columns, times, lateness="1 minute")
    changes, pairs = [], []
    for orders, payments in given:
        for name, table in (("orders", orders), ("payments", payments)):
            found = stream.feed(table, name)
            changes += found["unpaid"].to_pylist()
            pairs += [tuple(row.values()) for row in found["paid"].to_pylist()]
    reached = stream.reached()["unpaid"].as_py()
    alive: list[Any] = []
    for change in changes:
        operation, _, *row = change.values()
        (alive.append if operation == "+" else alive.remove)(tuple(row))
    return (
        sorted(row for row in alive if row[1] > reached),
        sorted(row for row in pairs if row[1] > reached),
    )


def test_killed_and_restarted(tmp_path: Path) -> None:
    given = arrivals()
    for number, (orders, payments) in enumerate(given[:3]):
        put(tmp_path / "orders", str(number), orders)
        put(tmp_path / "payments", str(number), payments)
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    first = subprocess.Popen(
        command(tmp_path), env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 240
        while not (tmp_path / "orders.duckdb").exists() or not rows(tmp_path, "paid"):
            assert first.poll() is None, "the run has ended"
            assert time.monotonic() < deadline, "no batch was committed"
            time.sleep(0.2)
    finally:
        # Driver and workers at once, wherever they are.
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
    for number, (orders, payments) in list(enumerate(given))[3:]:
        put(tmp_path / "orders", str(number), orders)
        put(tmp_path / "payments", str(number), payments)
    done = subprocess.run(
        command(tmp_path, "--once", "--no-flush"), env=environment, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    unpaid, paid = recomputed(given)
    assert unpaid
    assert rows(tmp_path, "unpaid") == unpaid
    assert rows(tmp_path, "paid") == paid
