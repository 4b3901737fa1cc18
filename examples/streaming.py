"""A stream of trades whose queries join and leave while it runs.

Run it with `.venv/bin/python examples/streaming.py`. It needs Java and `pip install muntin[spark]`.
"""

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from muntin import run, sinks
from muntin.spark import session, stop
from muntin.spark.streaming.driver.handle import Run
from muntin.testing import trades

VWAP = """
CREATE QUERY vwap AS
  SELECT symbol, sum(price * vol) / sum(vol) AS vwap
  FROM trades [RANGE '10 minutes' SLIDE '5 minutes'] GROUP BY symbol
"""
LARGE = """
CREATE QUERY large AS
  SELECT count(*) AS n, max(vol) AS largest
  FROM trades [RANGE '10 minutes' SLIDE '5 minutes'] WHERE vol > 5000
"""
PARTS = 6


def arrive(folder: Path, number: int, rows: pa.Table) -> None:
    """Put a file into the folder that the stream reads: hidden first, so that it appears whole."""
    hidden = folder / f".{number}.parquet"
    pq.write_table(rows, hidden)
    hidden.rename(folder / f"{number}.parquet")


def wait_for(stream: Run, rows: int) -> None:
    while stream.progress().rows < rows:
        if stream.await_termination(0.05):
            return


def main(folder: Path) -> None:
    day = trades(12_000, seconds=3600)
    size = day.num_rows // PARTS
    incoming = folder / "in"
    incoming.mkdir()
    spark = session("streaming example", master="local[2]")
    rows = spark.readStream.schema("ts timestamp, symbol string, price double, vol bigint")
    frame = rows.option("maxFilesPerTrigger", 1).parquet(str(incoming))
    output = sinks.parquet(folder / "out")
    with run(frame, VWAP, time="ts", sink=output, checkpoint=folder / "checkpoint") as stream:
        for number in range(PARTS):
            if number == 2:
                stream.add(LARGE)
                print("large joins:", [query.name for query in stream.queries()])
            if number == 4:
                stream.remove("vwap")
                print("vwap leaves:", [query.name for query in stream.queries()])
            part = day.slice(number * size, size).select(["ts", "symbol", "price", "vol"])
            arrive(incoming, number, part)
            wait_for(stream, (number + 1) * size)
        print(stream.plan())
        print(stream.progress())
    stop(spark)
    for name, table in sinks.read(folder / "out").items():
        print(f"\n{name}\n{table.slice(0, 4).to_pandas().to_string(index=False)}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        main(Path(name))
