CREATE TABLE orders (
  order_time TIMESTAMP(3), id BIGINT,
  WATERMARK FOR order_time AS order_time - INTERVAL '5' SECOND
) WITH ('connector' = 'filesystem', 'path' = '/orders', 'format' = 'parquet');
CREATE TABLE shipments (
  ship_time TIMESTAMP(3), order_id BIGINT, carrier STRING,
  WATERMARK FOR ship_time AS ship_time
) WITH ('connector' = 'filesystem', 'path' = '/shipments', 'format' = 'parquet');
CREATE TABLE shipped (id BIGINT, carrier STRING) WITH ('connector' = 'print');
-- shipped within four hours, and those that were not
INSERT INTO shipped
SELECT o.id, s.carrier FROM orders o LEFT JOIN shipments s ON o.id = s.order_id
  AND o.order_time BETWEEN s.ship_time - INTERVAL '4' HOUR AND s.ship_time;
CREATE VIEW around AS SELECT o.id, s.carrier FROM orders o, shipments s
  WHERE o.id = s.order_id AND s.ship_time > o.order_time - INTERVAL '10' MINUTE
  AND s.ship_time < o.order_time + INTERVAL '4' HOUR AND s.carrier <> 'x';
CREATE VIEW slow AS SELECT o.id, s.carrier FROM orders o FULL OUTER JOIN shipments s
  ON o.id = s.order_id AND s.ship_time >= o.order_time + INTERVAL '1' HOUR
  AND s.ship_time <= o.order_time + INTERVAL '1' DAY;
CREATE VIEW early AS SELECT o.id, s.carrier FROM orders o RIGHT JOIN shipments s
  ON o.id = s.order_id AND s.ship_time BETWEEN o.order_time - INTERVAL '1' HOUR
  AND o.order_time - INTERVAL '1' MINUTE;
CREATE VIEW endless AS SELECT o.id FROM orders o JOIN shipments s
  ON o.id = s.order_id AND s.ship_time >= o.order_time;
CREATE VIEW counted AS SELECT o.id, count(*) AS n FROM orders o JOIN shipments s
  ON o.id = s.order_id AND s.ship_time BETWEEN o.order_time AND o.order_time + INTERVAL '1' DAY
  GROUP BY o.id;
