-- Orders and payments as files that arrive; unpaid orders as a table of those that are unpaid now.
--   .venv/bin/muntin run examples/orders.sql --set folder=/tmp/shop --checkpoint /tmp/shop/checkpoint

CREATE STREAM orders (ts TIMESTAMP, id BIGINT, buyer STRING, total DOUBLE)
  WITH (format = 'parquet', path = '${folder}/orders', time = 'ts', lateness = '1 minute');

CREATE STREAM payments (paid_at TIMESTAMP, order_id BIGINT, amount DOUBLE)
  WITH (format = 'parquet', path = '${folder}/payments', time = 'paid_at', lateness = '1 minute');

CREATE SINK live WITH (format = 'duckdb', path = '${folder}/orders.duckdb', live = TRUE);

CREATE QUERY unpaid WITH (output = 'changes') AS
  SELECT o.id, o.total
  FROM orders [RANGE '30 minutes'] o
  LEFT ANTI JOIN payments [RANGE '1 day'] p ON o.id = p.order_id AND p.amount >= o.total;

CREATE QUERY paid AS
  SELECT o.id, p.amount
  FROM orders [RANGE '30 minutes'] o JOIN payments [RANGE '30 minutes'] p ON o.id = p.order_id
  WHERE p.paid_at >= o.ts;

CREATE QUERY turnover AS
  SELECT sum(amount) AS amount, count(*) AS n FROM payments [RANGE '30 minutes' SLIDE '30 minutes'];
