CREATE STREAM orders (order_time TIMESTAMP_NTZ, id BIGINT)
  WITH (format = 'parquet', path = '/orders', time = 'order_time', lateness = '5 seconds');

CREATE STREAM shipments (ship_time TIMESTAMP_NTZ, order_id BIGINT, carrier STRING)
  WITH (format = 'parquet', path = '/shipments', time = 'ship_time');

CREATE SINK shipped
  WITH (format = 'console');

-- shipped within four hours, and those that were not
-- line 11: note: results for shipped begin with valid_from and valid_to; a pair is alive while both its rows are: see docs/joins.md
INSERT INTO shipped
  SELECT o.id, s.carrier
  FROM orders [RANGE '4 hours 1 microsecond'] AS o
  LEFT JOIN shipments [RANGE '1 microsecond'] AS s ON o.id = s.order_id EMIT UNMATCHED;

CREATE QUERY around AS
  SELECT o.id, s.carrier
  FROM orders [RANGE '4 hours'] AS o, shipments [RANGE '10 minutes'] AS s
  WHERE o.id = s.order_id AND s.carrier <> 'x';

CREATE QUERY slow AS
  SELECT o.id, s.carrier
  FROM orders [RANGE '1 day 1 microsecond'] AS o
  FULL JOIN shipments [RANGE '1 microsecond'] AS s ON o.id = s.order_id AND unix_micros(s.ship_time) - unix_micros(o.order_time) >= 3600000000 EMIT UNMATCHED;

CREATE QUERY early AS
  SELECT o.id, s.carrier
  FROM orders [RANGE '1 microsecond'] AS o
  RIGHT JOIN shipments [RANGE '1 hour 1 microsecond'] AS s ON o.id = s.order_id AND unix_micros(s.ship_time) - unix_micros(o.order_time) <= -60000000 EMIT UNMATCHED;

-- line 23: the difference of the times has no upper bound; bound the times both ways, as in p.ts BETWEEN o.ts AND o.ts + INTERVAL '1' HOUR
-- not carried over:
-- CREATE VIEW endless AS SELECT o.id FROM orders o JOIN shipments s
--   ON o.id = s.order_id AND s.ship_time >= o.order_time

-- line 25: GROUP BY above a join by time; aggregate each stream by itself, or the results of the join
-- not carried over:
-- CREATE VIEW counted AS SELECT o.id, count(*) AS n FROM orders o JOIN shipments s
--   ON o.id = s.order_id AND s.ship_time BETWEEN o.order_time AND o.order_time + INTERVAL '1' DAY
--   GROUP BY o.id
