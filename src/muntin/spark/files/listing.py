"""Which files there are, as Spark lists them, and the columns that their folders give."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from muntin.errors import DataError
from muntin.spark.files.columns import UnlikeSparkError
from muntin.spark.files.files import Files
from muntin.spark.files.pieces import is_plain, local_path
from muntin.spark.frames import quoted, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

# Options that say which files there are.
LISTING = ("recursivefilelookup", "pathglobfilter", "basepath", "modifiedbefore", "modifiedafter")
_COLUMNS = ("path", "modificationTime", "length", "content")


@dataclass(frozen=True)
class Listing:
    """Spark's ``binaryFile`` source over the files: names and folders, and no file is opened."""

    frame: DataFrame
    uris: tuple[str, ...]

    @classmethod
    def of(cls, session: SparkSession, files: Files, timezone: str) -> Listing:
        """List the files; times in names of folders are in this zone."""
        wanted = {*LISTING, "timezone"}
        options = {name: value for name, value in files.options if name.lower() in wanted}
        options = {"timeZone": timezone, **options}
        reader = session.read.format("binaryFile").options(**options)
        frame = load(reader, files)
        return cls(frame, tuple(sorted(frame.inputFiles())))

    @property
    def folders(self) -> list[str]:
        """The columns that come from the names of folders."""
        return list(self.frame.columns[len(_COLUMNS) :])

    def paths(self) -> list[str]:
        """The files as workers open them."""
        found = []
        for uri in self.uris:
            path = local_path(uri)
            if path is None or not is_plain(path):
                raise UnlikeSparkError(f"workers do not open {uri}")
            found.append(path)
        return found

    def values(self, schema: pa.Schema) -> dict[str, Mapping[str, pa.Scalar]]:
        """What the folders of each file give, in the types of a schema."""
        types = {field.name.lower(): field for field in schema}
        names = [name for name in self.folders if name.lower() in types]
        if not names:
            return {}
        table = self.frame.select("path", *(quoted(name) for name in names)).toArrow()
        columns = {
            types[name.lower()].name: table[name].cast(types[name.lower()].type) for name in names
        }
        # The column holds the path as it is, not as a URI would spell it.
        paths = [path.removeprefix("file:") for path in table["path"].to_pylist()]
        return {
            path: {name: column[place] for name, column in columns.items()}
            for place, path in enumerate(paths)
        }


def load(reader: Any, files: Files) -> DataFrame:
    """What a reader of Spark makes of the paths."""
    from pyspark.errors import AnalysisException  # noqa: PLC0415  imported when it is used

    try:
        loaded: DataFrame = reader.load(list(files.paths))
        return loaded
    except AnalysisException as error:
        raise DataError(
            f"Spark cannot list or read {', '.join(files.paths)}: {error.getMessage()}",
            hint="check the paths, the format and the options",
        ) from error


_WRITTEN_BY_SPARK = b"org.apache.spark.sql.parquet.row.metadata"
# Settings that change what Spark makes of a column; with others than these, it is asked.
_USUAL = {
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.int96AsTimestamp": "true",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.mergeSchema": "false",
}
_PHYSICAL = {
    "BOOLEAN": pa.bool_(),
    "INT32": pa.int32(),
    "INT64": pa.int64(),
    "INT96": pa.timestamp("us", "UTC"),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "BYTE_ARRAY": pa.binary(),
    "FIXED_LEN_BYTE_ARRAY": pa.binary(),
}
_INTEGERS = {
    (8, True): pa.int8(),
    (16, True): pa.int16(),
    (32, True): pa.int32(),
    (64, True): pa.int64(),
    (8, False): pa.int16(),
    (16, False): pa.int32(),
    (32, False): pa.int64(),
    (64, False): pa.decimal128(20, 0),
}


def read_schema(session: SparkSession, path: str) -> StructType | None:
    """What Spark's reader takes the file's columns to be; None where only Spark can tell."""
    if any(session.conf.get(name, usual) != usual for name, usual in _USUAL.items()):
        return None
    try:
        with pq.ParquetFile(path) as file:
            return _schema_of(file)
    except (pa.ArrowException, OSError):
        return None


def _schema_of(file: pq.ParquetFile) -> StructType | None:
    from pyspark.sql.types import StructType  # noqa: PLC0415  imported when it is used

    written = (file.metadata.metadata or {}).get(_WRITTEN_BY_SPARK)
    if written is not None:
        return StructType.fromJson(json.loads(written))
    fields = []
    for place in range(len(file.schema)):
        column = file.schema.column(place)
        kind = _arrow_type(column)
        if kind is None or column.max_repetition_level or column.path != column.name:
            return None
        fields.append(pa.field(column.name, kind))
    return spark_schema(pa.schema(fields))


def _arrow_type(column: Any) -> pa.DataType | None:
    """The type of a flat column, by what is written beside it."""
    logical = json.loads(column.logical_type.to_json())
    match logical["Type"]:
        case "None":
            return _PHYSICAL[column.physical_type]
        case "Int":
            return _INTEGERS[logical["bitWidth"], logical["isSigned"]]
        case "String" | "Enum" | "JSON":
            return pa.string()
        case "Date":
            return pa.date32()
        case "Decimal" if logical["precision"] <= 38:
            return pa.decimal128(logical["precision"], logical["scale"])
        case "Timestamp" if logical["timeUnit"] in ("milliseconds", "microseconds"):
            return pa.timestamp("us", "UTC" if logical["isAdjustedToUTC"] else None)
        case _:
            return None
