-- What runs all the time, and what is kept for questions that come later.
CREATE QUERY turnover AS
  SELECT sum(price * vol) AS value FROM trades [RANGE '15 minutes' SLIDE '5 minutes'];

CREATE KEEP recent AS
  SELECT symbol, max(price), sum(vol), count(*)
  FROM trades [RANGE '1 hour' SLIDE '1 second'] GROUP BY symbol
  CUT (vol > 5000);

CREATE KEEP last AS
  SELECT * FROM trades [PARTITION BY symbol ROWS 10];
