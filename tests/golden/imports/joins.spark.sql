CREATE TABLE impressions (impressionTime TIMESTAMP, impressionAdId BIGINT)
  USING parquet LOCATION '/impressions';
CREATE TABLE clicks (clickTime TIMESTAMP, clickAdId BIGINT, cost DOUBLE)
  USING parquet LOCATION '/clicks';
CREATE VIEW clicked AS
SELECT impressionAdId, clickTime, cost FROM impressions LEFT OUTER JOIN clicks
  ON clickAdId = impressionAdId AND clickTime >= impressionTime
  AND clickTime <= impressionTime + interval 1 hour;
