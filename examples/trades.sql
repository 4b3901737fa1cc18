-- What a desk watches. All windows end on the minute, so their results can be joined.
CREATE QUERY last_1m AS
  SELECT symbol, sum(price * vol) / sum(vol) AS vwap_1m, max(price) AS high_1m,
         min(price) AS low_1m, sum(vol) AS volume_1m
  FROM trades [RANGE '1 minute' SLIDE '1 minute'] GROUP BY symbol;

CREATE QUERY last_5m AS
  SELECT symbol, sum(price * vol) / sum(vol) AS vwap_5m, max(price) AS high_5m,
         min(price) AS low_5m
  FROM trades [RANGE '5 minutes' SLIDE '1 minute'] GROUP BY symbol;

CREATE QUERY last_15m AS
  SELECT symbol, sum(price * vol) / sum(vol) AS vwap_15m, max(price) AS high_15m,
         min(price) AS low_15m, avg(price) AS average_15m
  FROM trades [RANGE '15 minutes' SLIDE '1 minute'] GROUP BY symbol;

CREATE QUERY last_1h AS
  SELECT symbol, avg(price) AS average_1h, sum(vol) AS volume_1h
  FROM trades [RANGE '1 hour' SLIDE '1 minute'] GROUP BY symbol;

CREATE QUERY blocks AS
  SELECT symbol, count(*) AS blocks_15m
  FROM trades [RANGE '15 minutes' SLIDE '1 minute'] WHERE vol >= 10000 GROUP BY symbol;
