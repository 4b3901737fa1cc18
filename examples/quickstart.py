"""Five metrics over one stream of trades, each with its own window, in one pass.

Run it with `.venv/bin/python examples/quickstart.py`.
"""

import muntin
from muntin.testing import trades

QUERIES = """
CREATE QUERY turnover AS
  SELECT sum(price * vol) AS value FROM trades [RANGE '15 minutes' SLIDE '5 minutes'];

CREATE QUERY large AS
  SELECT count(*) AS n, max(vol) AS largest
  FROM trades [RANGE '15 minutes' SLIDE '5 minutes'] WHERE vol > 5000;

CREATE QUERY vwap AS
  SELECT symbol, sum(price * vol) / sum(vol) AS vwap
  FROM trades [RANGE '10 minutes' SLIDE '10 minutes'] GROUP BY symbol;

CREATE QUERY candles AS
  SELECT symbol, first(price) AS open, max(price) AS high, min(price) AS low, last(price) AS close
  FROM TUMBLE(TABLE trades, DESCRIPTOR(ts), INTERVAL '20' MINUTE)
  GROUP BY symbol, window_start, window_end;
"""

if __name__ == "__main__":
    quiet = (
        muntin.query("quiet")
        .window("30 minutes", "10 minutes")
        .where("vol <= 100")
        .agg(share="count(*)", deviation="stddev(price)")
    )
    results = muntin.aggregate(trades(50_000), [QUERIES, quiet], time="ts")
    print(results.plan)
    for name in results:
        print(f"\n{name}")
        print(results[name].slice(0, 4).to_pandas().to_string(index=False))
