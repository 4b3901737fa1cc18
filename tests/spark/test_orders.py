"""The orders example as a SQL file on Spark: killed, restarted, and its tables recomputed."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from quick_jvm import OPTION, VALUE

FILE = Path(__file__).parents[2] / "examples" / "orders.sql"
ORDERS = pa.schema(
    {"ts": pa.timestamp("us", "UTC"), "id": pa.int64(), "buyer": pa.string(), "total": pa.float64()}
)
PAYMENTS = pa.schema(
    {"paid_at": pa.timestamp("us", "UTC"), "order_id": pa.int64(), "amount": pa.float64()}
)
MINUTE = 60_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
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


def recomputed(given: list[tuple[pa.Table, pa.Table]]) -> dict[str, list[Any]]:
    """What the tables hold, from all rows and by the meaning of the queries alone.

    W is the largest time less a minute. An order is unpaid from its time to its first payment in
    full, which a change says once W has passed it. A pair is there from the moment it is known.
    """
    orders = [row for each, _ in given for row in each.to_pylist()]
    payments = [row for _, each in given for row in each.to_pylist()]
    half_hour, minute = timedelta(minutes=30), timedelta(minutes=1)
    paid_up_to = max(each["paid_at"] for each in payments) - minute
    reached = min(max(each["ts"] for each in orders) - minute, paid_up_to)
    unpaid, pairs = [], []
    for order in orders:
        begin, end = order["ts"], order["ts"] + half_hour
        mine = [each for each in payments if each["order_id"] == order["id"]]
        full = [each["paid_at"] for each in mine if each["amount"] >= order["total"]]
        if begin < reached < end and not any(each < reached for each in full):
            unpaid.append((begin, end, order["id"], order["total"]))
        for each in mine:
            times = (begin, each["paid_at"])
            if begin <= each["paid_at"] < end and min(times) + half_hour > reached:
                pairs.append((max(times), min(times) + half_hour, order["id"], each["amount"]))
    windows: dict[datetime, list[float]] = {}
    for each in payments:
        windows.setdefault(each["paid_at"] - (each["paid_at"] - EPOCH) % half_hour, []).append(
            each["amount"]
        )
    turnover = [
        (begin, begin + half_hour, math.fsum(amounts), len(amounts))
        for begin, amounts in windows.items()
        if begin + half_hour <= paid_up_to
    ]
    return {"unpaid": sorted(unpaid), "paid": sorted(pairs), "turnover": sorted(turnover)}


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
    expected = recomputed(given)
    assert all(expected.values())
    assert {table: rows(tmp_path, table) for table in expected} == expected
