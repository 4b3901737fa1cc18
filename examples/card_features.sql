-- What a card has lately been used for. Training and serving both read this file.
CREATE QUERY last_10m AS
  SELECT card, count(*) AS n_10m, sum(amount) AS sum_10m, avg(amount) AS mean_10m,
         max(amount) AS max_10m
  FROM payments [RANGE '10 minutes' SLIDE '1 minute'] GROUP BY card;

CREATE QUERY last_1h AS
  SELECT card, count(*) AS n_1h, sum(amount) AS sum_1h, avg(amount) AS mean_1h,
         max(amount) AS max_1h
  FROM payments [RANGE '1 hour' SLIDE '5 minutes'] GROUP BY card;

CREATE QUERY last_1d AS
  SELECT card, count(*) AS n_1d, sum(amount) AS sum_1d, avg(amount) AS mean_1d,
         max(amount) AS max_1d
  FROM payments [RANGE '1 day' SLIDE '1 hour'] GROUP BY card;
