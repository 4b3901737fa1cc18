"""Apache Flink: `HOP` table-valued functions, all queries in one statement set."""

from __future__ import annotations

import runpy
import shutil
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import csv

_TYPES = {
    "timestamp[us, tz=UTC]": "TIMESTAMP(3)",
    "int64": "BIGINT",
    "double": "DOUBLE",
    "bool": "BOOLEAN",
    "string": "STRING",
}
# A watermark says that no row of its own time comes any more, and rows have equal times.
_WATERMARK = "ts - INTERVAL '0.001' SECOND"
_CONFIG = {
    "parallelism.default": "2",
    "pipeline.object-reuse": "true",
    "table.local-time-zone": "UTC",
    "execution.target": "remote",
    "rest.address": "localhost",
}


@cache
def _cluster_port() -> int:
    """Where the cluster of all modes listens; it is started by the first."""
    home = Path(str(import_module("pyflink").__file__)).parent
    # Files here have the names of packages: their folder is not on the path.
    names = runpy.run_path(str(Path(__file__).with_name("flink_cluster.py")))
    return int(names["Cluster"](home).port)


class Adapter:
    """A session cluster with two slots; rows from CSV, as its Parquet format is no package.

    In mode `stream` jobs run on the streaming runtime, where windows share their slices, and in
    mode `batch` on the one for bounded input. In mode `scan` rows are only read.
    """

    def __init__(self, mode: str) -> None:
        self._mode = mode
        table = import_module("pyflink.table")
        settings = table.EnvironmentSettings.new_instance()
        settings = settings.in_batch_mode() if mode == "batch" else settings.in_streaming_mode()
        self._tables = table.TableEnvironment.create(settings.build())
        for name, value in {**_CONFIG, "rest.port": str(_cluster_port())}.items():
            self._tables.get_config().set(name, value)

    def prepare(self, job: dict[str, Any]) -> str:
        """Write the rows as CSV, untimed, and declare the source and the sinks."""
        self._job, queries = job, job["queries"]
        types = {
            field.name: _TYPES[str(field.type)]
            for field in pq.read_schema(job["data"])
            if field.name in job["columns"]
        }
        columns = ", ".join(f"{name} {kind}" for name, kind in types.items())
        source = _file(_csv(Path(job["data"]), list(types)))
        self._declare("events", f"{columns}, WATERMARK FOR ts AS {_WATERMARK}", source)
        self._declare("read", columns, "'connector' = 'blackhole'")
        keys = "".join(f", {name} {types[name]}" for name in queries[0]["groups"])
        values = "".join(
            f", {each['name']} {_kind(each, types)}" for each in queries[0]["aggregates"]
        )
        shape = f"query STRING, window_start STRING{keys}{values}"
        self._out = Path(job["answers"]).with_suffix(".csv")
        self._declare("nowhere", shape, "'connector' = 'blackhole'")
        self._declare("answers", shape, _file(self._out))
        if self._mode == "scan":
            return "rows are read, and nothing else"
        return f"HOP, one statement set, {self._mode} runtime, blackhole sink"

    def _declare(self, name: str, columns: str, options: str) -> None:
        self._tables.execute_sql(f"DROP TABLE IF EXISTS {name}")
        self._tables.execute_sql(f"CREATE TABLE {name} ({columns}) WITH ({options})")

    def run(self) -> None:
        """Answer all queries."""
        if self._mode == "scan":
            self._tables.execute_sql("INSERT INTO read SELECT * FROM events").wait()
        else:
            self._insert("nowhere")

    def _insert(self, sink: str) -> None:
        statements = self._tables.create_statement_set()
        for query in self._job["queries"]:
            statements.add_insert_sql(f"INSERT INTO {sink} {_text(query)}")
        statements.execute().wait()

    def tables(self, _: None) -> Iterator[tuple[str, pa.Table]]:
        """The answers, of a run of their own."""
        if self._mode == "scan":
            return
        shutil.rmtree(self._out, ignore_errors=True)
        self._insert("answers")
        yield from _read(self._out, self._job["queries"])


def _file(path: Path) -> str:
    return f"'connector' = 'filesystem', 'path' = 'file://{path}', 'format' = 'csv'"


def _csv(data: Path, columns: list[str]) -> Path:
    """Two files, one a reader, with every other row each: both readers see times in order."""
    folder = data.parent / f"{data.stem}-{'-'.join(columns)}"
    if not folder.is_dir():
        table = pq.read_table(data, columns=columns)
        table = table.set_column(0, "ts", table.column("ts").cast(pa.timestamp("ms")))
        folder.mkdir()
        for part in range(2):
            own = table.take(pa.array(range(part, table.num_rows, 2)))
            options = csv.WriteOptions(include_header=False, quoting_style="none")
            csv.write_csv(own, folder / f"{part}.csv", options)
    return folder


def _kind(each: dict[str, Any], types: dict[str, str]) -> str:
    """The type of an aggregate's answers."""
    if each["function"] == "top":
        raise NotImplementedError("the ten largest of a window are no aggregate of Flink's")
    if each["function"] in ("count", "distinct"):
        return "BIGINT"
    return "DOUBLE" if each["function"] == "avg" else types[each["column"]]


def _spelled(each: dict[str, Any]) -> str:
    """Flink's averages of integers are integers."""
    text = str(each["sql"])
    if each["function"] == "avg":
        text = text.replace(f"({each['column']})", f"(CAST({each['column']} AS DOUBLE))")
    return text


def _text(query: dict[str, Any]) -> str:
    groups = "".join(f", {name}" for name in query["groups"])
    chosen = ", ".join(map(_spelled, query["aggregates"]))
    where = f"WHERE {query['where']}" if query["where"] else ""
    slide, size = (_interval(query[name]) for name in ("slide", "range"))
    return (
        f"SELECT '{query['name']}', CAST(window_start AS STRING){groups}, {chosen} "
        f"FROM TABLE(HOP(TABLE events, DESCRIPTOR(ts), {slide}, {size})) {where} "
        f"GROUP BY window_start, window_end{groups}"
    )


def _interval(microseconds: int) -> str:
    seconds, rest = divmod(microseconds // 1000, 1000)
    return f"INTERVAL '{seconds}.{rest:03d}' SECOND(6, 3)"


def _read(folder: Path, queries: list[dict[str, Any]]) -> Iterator[tuple[str, pa.Table]]:
    first = queries[0]
    names = ["query", "window_start", *first["groups"], *(a["name"] for a in first["aggregates"])]
    options = csv.ReadOptions(column_names=names)
    types = csv.ConvertOptions(column_types={"window_start": pa.string()})
    found = [path for path in folder.rglob("*") if path.is_file() and path.stat().st_size]
    table = pa.concat_tables([csv.read_csv(path, options, convert_options=types) for path in found])
    starts = table.column("window_start").cast(pa.timestamp("us")).cast(pa.int64())
    table = table.set_column(1, "window_start", starts)
    for query in queries:
        own = table.filter(pc.field("query") == query["name"])
        if own.num_rows:
            yield query["name"], own.drop_columns(["query"])
