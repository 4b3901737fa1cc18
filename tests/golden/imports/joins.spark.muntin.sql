-- line 1: note: no SQL says how late rows of impressions may be; add lateness = '10 seconds', as much as withWatermark says
CREATE STREAM impressions (impressionTime TIMESTAMP, impressionAdId BIGINT)
  WITH (format = 'parquet', path = '/impressions', time = 'impressionTime');

-- line 3: note: no SQL says how late rows of clicks may be; add lateness = '10 seconds', as much as withWatermark says
CREATE STREAM clicks (clickTime TIMESTAMP, clickAdId BIGINT, cost DOUBLE)
  WITH (format = 'parquet', path = '/clicks', time = 'clickTime');

CREATE QUERY clicked AS
  SELECT impressionAdId, clickTime, cost
  FROM impressions [RANGE '1 hour 1 microsecond']
  LEFT JOIN clicks [RANGE '1 microsecond'] ON clickAdId = impressionAdId EMIT UNMATCHED;
