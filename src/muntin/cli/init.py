"""``muntin init``: a starter project that runs as it is."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

LIVE = """\
-- A stream of synthetic trades: ts, symbol, price, vol, exchange. It never ends.
--
--   muntin run live.sql        runs it; Ctrl-C stops it, and the same command resumes
--   muntin explain live.sql    shows what its queries share; nothing is run
--
-- For your own stream, replace the next statement. Files that arrive in a folder:
--   CREATE STREAM trades (ts TIMESTAMP, symbol STRING, price DOUBLE, vol BIGINT)
--     WITH (format = 'parquet', path = 'incoming', time = 'ts', lateness = '10 seconds');
-- or a topic of Kafka's, with format = 'kafka', subscribe = 'trades' and so on.
CREATE STREAM trades WITH (format = 'rate', rows_per_second = 1000, symbols = 8);

-- Results of queries that no sink takes are shown on the screen. This one takes all:
-- CREATE SINK results WITH (format = 'duckdb', path = 'results.duckdb');

-- Every second, what was traded in the last ten.
CREATE QUERY turnover AS
  SELECT sum(price * vol) AS value, count(*) AS trades
  FROM trades [RANGE '10 seconds' SLIDE '1 second'];

-- The same in the spelling of Spark, by symbol: the price that volumes weigh.
CREATE QUERY vwap AS
  SELECT symbol, sum(price * vol) / sum(vol) AS vwap
  FROM trades GROUP BY window(ts, '30 seconds', '5 seconds'), symbol;

-- And in the spelling of Flink, large trades only.
CREATE QUERY large AS
  SELECT count(*) AS trades, max(vol) AS largest
  FROM HOP(TABLE trades, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '20' SECOND)
  WHERE vol > 5000 GROUP BY window_start, window_end;
"""
HISTORY = """\
-- Trades of one hour in CSV files, a table to join, and results in Parquet files.
--
--   muntin run history.sql --once      answers everything there is, and ends
--
-- Without --once it waits for more files in data/trades.
CREATE STREAM trades (
  ts TIMESTAMP, symbol STRING, price DOUBLE, vol BIGINT, exchange STRING
) WITH (format = 'csv', path = 'data/trades', time = 'ts');

-- Read again when its file changes.
CREATE TABLE names (symbol STRING, company STRING) WITH (format = 'csv', path = 'data/names.csv');

CREATE SINK results WITH (format = 'parquet', path = 'out');

CREATE QUERY turnover AS
  SELECT company, sum(price * vol) AS value
  FROM trades [RANGE '15 minutes' SLIDE '5 minutes'] JOIN names USING (symbol)
  GROUP BY company;

CREATE QUERY spread AS
  SELECT symbol, max(price) - min(price) AS spread
  FROM trades [RANGE '10 minutes' SLIDE '10 minutes'] GROUP BY symbol;
"""
README = """\
# A Muntin project

| file | what it is |
|---|---|
| `live.sql` | queries over synthetic trades that never end |
| `history.sql` | queries over the files in `data/trades` |
| `data/` | trades of one hour, and the companies behind their symbols |

```sh
muntin check live.sql            # says everything that is wrong with a file
muntin run live.sql              # live results; Ctrl-C stops, the same command resumes
muntin run history.sql --once    # results in out/
```

While `live.sql` runs, in another terminal in this folder:

```sh
muntin list
muntin add "CREATE QUERY top AS SELECT max(price) AS top
  FROM trades [RANGE '5 seconds' SLIDE '1 second']"
muntin drop top
```

Results in Python: `muntin.read("out")["turnover"]` is a pyarrow Table.

`.muntin/` holds where each file has got to. To begin `history.sql` again, remove
`.muntin/history` and `out`.
"""
IGNORED = ".muntin/\nout/\nresults.duckdb\n"
NAMES = "symbol,company\nA,Alder Works\nB,Birch Mills\nC,Cedar Lines\nD,Douglas Freight\n"
_PARTS = 4


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to make.")],
) -> None:
    """Make a folder with a commented project that runs as it is; nothing is overwritten.

    Example: muntin init trades && cd trades && muntin run live.sql
    """
    from muntin.errors import MuntinError  # noqa: PLC0415 - the command line starts without it

    contents = {**_texts(), **_data()}
    taken = [name for name in contents if (folder / name).exists()]
    if taken or (folder.exists() and not folder.is_dir()):
        what = f"{folder / taken[0]} is there" if taken else f"{folder} is a file"
        raise MuntinError(f"{what} already", hint="choose another folder: nothing was changed")
    try:
        for name, content in contents.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            with (folder / name).open("xb") as file:
                file.write(content)
    except OSError as error:
        raise MuntinError(f"cannot write to {folder}: {error.strerror}") from None
    sys.stdout.write(f"made {folder}; next: cd {folder} && muntin run live.sql\n")


def _texts() -> dict[str, bytes]:
    texts = {"live.sql": LIVE, "history.sql": HISTORY, "README.md": README, ".gitignore": IGNORED}
    return {name: text.encode() for name, text in {**texts, "data/names.csv": NAMES}.items()}


def _data() -> dict[str, bytes]:
    import pyarrow as pa  # noqa: PLC0415 - as above
    from pyarrow import csv  # noqa: PLC0415

    from muntin.testing import trades  # noqa: PLC0415

    table, files = trades(2000, seed=7, seconds=3600), {}
    size = table.num_rows // _PARTS
    for number in range(_PARTS):
        stream = pa.BufferOutputStream()
        csv.write_csv(table.slice(number * size, size), stream)
        files[f"data/trades/part-{number}.csv"] = stream.getvalue().to_pybytes()
    return files
