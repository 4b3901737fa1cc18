"""Which options streams, tables and sinks of each format have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from muntin.pipelines import values as v

# The columns of generated trades.
RATE_COLUMNS = pa.schema(
    {
        "ts": pa.timestamp("us", "UTC"),
        "symbol": pa.string(),
        "price": pa.float64(),
        "vol": pa.int64(),
        "exchange": pa.string(),
    }
)
FILE_FORMATS = ("parquet", "csv", "json")
# Options of Spark's own Kafka source; those of Kafka itself begin with kafka. and are not listed.
KAFKA_TOPICS = ("subscribe", "subscribePattern", "assign")
KAFKA_OPTIONS = (
    *KAFKA_TOPICS,
    "startingOffsets",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "startingTimestamp",
    "failOnDataLoss",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "minPartitions",
    "groupIdPrefix",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
)
KAFKA_PREFIX = "kafka."
KAFKA_SERVERS = "kafka.bootstrap.servers"


@dataclass(frozen=True)
class Rule:
    """How an option is read, what it is if not given, and whether it must be."""

    read: v.Reader
    default: Any = None
    required: bool = False


_PATH = {"path": Rule(v.text, required=True)}
_CSV = {"header": Rule(v.boolean, default=True), "delimiter": Rule(v.letter, default=",")}
_BATCHES = {"files_per_batch": Rule(v.number(1, 1_000_000))}
_STREAM = {
    "time": Rule(v.text, default="ts"),
    "lateness": Rule(v.length, default=0),
    "advance_when_idle": Rule(v.length_or_none),
    "on_bad_row": Rule(v.choice("skip", "fail"), default="skip"),
    "on_error": Rule(v.choice("null", "fail"), default="null"),
    "max_ahead": Rule(v.length_or_none, default="1 day"),
    "side_output": Rule(v.text),
    "timezone": Rule(v.timezone),
}
_RATE = {
    "rows_per_second": Rule(v.number(1, 100_000_000), default=1000),
    "symbols": Rule(v.number(1, 1_000_000), default=10),
    "seed": Rule(v.number(0, 2**31 - 1), default=7),
}
_KAFKA = {
    KAFKA_SERVERS: Rule(v.text, required=True),
    "value_format": Rule(v.choice("json", "csv"), default="json"),
    **{name: Rule(v.any_text) for name in KAFKA_OPTIONS},
}
_REFRESH = {"refresh": Rule(v.refresh, default=v.ON_CHANGE)}

OPTIONS: Mapping[str, Mapping[str, Mapping[str, Rule]]] = {
    "stream": {
        "parquet": {**_STREAM, **_PATH, **_BATCHES},
        "csv": {**_STREAM, **_PATH, **_BATCHES, **_CSV},
        "json": {**_STREAM, **_PATH, **_BATCHES},
        "rate": {**_STREAM, **_RATE},
        "kafka": {**_STREAM, **_KAFKA},
    },
    "table": {
        "parquet": {**_PATH, **_REFRESH},
        "csv": {**_PATH, **_REFRESH, **_CSV},
        "json": {**_PATH, **_REFRESH},
    },
    "sink": {
        "parquet": dict(_PATH),
        "console": {"rows": Rule(v.number(1, 10_000), default=20)},
        "memory": {"max_rows": Rule(v.number(1, 10**12))},
        "duckdb": dict(_PATH),
        "postgres": {
            "url_env": Rule(v.variable, default="MUNTIN_POSTGRES_URL"),
            "schema": Rule(v.text, default="public"),
            "prefix": Rule(v.any_text, default=""),
        },
    },
}
# What people try, and what to write instead.
ADVICE = {
    "url": "name an environment variable that holds it: url_env = 'MUNTIN_POSTGRES_URL'",
    "password": "put it into the URL that the environment variable of url_env holds",
    "connector": "write format = 'kafka', 'csv', 'json' or 'parquet'",
    "topic": "write subscribe = 'topic'",
    "bootstrap.servers": f"write {KAFKA_SERVERS}",
    "properties.bootstrap.servers": f"write {KAFKA_SERVERS}",
    "watermark": "write lateness = '10 seconds'",
    "sep": "write delimiter",
}
