"""The kinds of frames users hand over: how each becomes Arrow, and results become it again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet

import pyarrow as pa
import pyarrow.compute as pc

from muntin.errors import DataError, did_you_mean
from muntin.expressions.storage import UNREADABLE

_LAID_OUT = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}


@dataclass(frozen=True)
class Input:
    """User data as Arrow tables of one schema, and the way back for results."""

    schema: pa.Schema
    batches: Iterable[pa.Table]
    restore: Callable[[pa.Table], Any]

    def table(self) -> pa.Table:
        """All batches as one table."""
        return pa.concat_tables([self.schema.empty_table(), *self.batches])


def read_frame(data: Any) -> Input:
    """Read a pyarrow, pandas or polars frame, or an iterable of record batches.

    >>> read_frame({"a": [1]})
    Traceback (most recent call last):
    muntin.errors.DataError: cannot read data of type dict
    Hint: give a pyarrow Table, an iterable of RecordBatches, a pandas or a polars frame
    """
    reader = _READERS.get(_kind(data))
    if reader is not None:
        return _checked(reader(data))
    if isinstance(data, Iterable) and not isinstance(data, str | bytes | dict):
        return _checked(_read_batches(data))
    hint = "give a pyarrow Table, an iterable of RecordBatches, a pandas or a polars frame"
    if isinstance(data, str | os.PathLike):
        hint = "read the file first, as with polars.read_parquet, or give muntin.files(path)"
    raise DataError(f"cannot read data of type {type(data).__name__}", hint=hint)


def read_tables(
    tables: Mapping[str, Any] | None, timezone: str | None = None
) -> dict[str, pa.Table]:
    """Static tables by name, from frames of any kind.

    Times that files give without a zone are in ``timezone``, or that of the Spark session.

    >>> read_tables({"close": pa.table({"symbol": ["a"], "cp": [1.5]})})["close"].num_rows
    1
    """
    if tables is not None and not isinstance(tables, Mapping):
        raise DataError(
            f"tables is a {type(tables).__name__}", hint='name them, as in tables={"close": frame}'
        )
    found = {
        str(name): read_frame(_in_zone(frame, timezone)).table()
        for name, frame in (tables or {}).items()
    }
    if len({name.lower() for name in found}) < len(found):
        raise DataError(
            f"tables {', '.join(found)} differ only in letter case", hint="rename one of them"
        )
    return found


def _in_zone(frame: Any, timezone: str | None) -> Any:
    return frame.in_zone(timezone) if timezone and _kind(frame) == _FILES else frame


def is_frame(data: Any) -> bool:
    """Whether data is one frame of a known kind."""
    return _kind(data) in _READERS


def is_on_spark(data: Any) -> bool:
    """Whether data is for Spark to read: a Spark DataFrame, or a description of files."""
    return _kind(data) in _ON_SPARK


def _kind(data: Any) -> str:
    """The library and class of a frame, found without importing libraries that are not in use."""
    for cls in type(data).__mro__:
        kind = f"{cls.__module__.split('.')[0]}.{cls.__name__}"
        if kind in _READERS:
            return kind
    return ""


def _checked(data: Input) -> Input:
    names = [name.lower() for name in data.schema.names]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if len(set(data.schema.names)) < len(names):
        raise DataError(
            f"columns {', '.join(repeated)} appear more than once", hint="rename one of each"
        )
    return _plain(data)


def _plain(data: Input) -> Input:
    """The same in layouts that everything can read: strings as views and runs are laid out."""
    plain = [_LAID_OUT.get(field.type, _values(field.type)) for field in data.schema]
    if plain == data.schema.types:
        return data
    fields = [field.with_type(kind) for field, kind in zip(data.schema, plain, strict=True)]
    schema = pa.schema(fields, data.schema.metadata)

    def tables() -> Iterator[pa.Table]:
        for batch in data.batches:
            columns = [
                _decoded(column).cast(kind) for column, kind in zip(batch, plain, strict=True)
            ]
            yield pa.Table.from_arrays(columns, schema=schema)

    return Input(schema, tables(), data.restore)


def _values(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_run_end_encoded(kind) else kind


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_run_end_encoded(column.type):
        return column
    chunks = [pc.run_end_decode(chunk) for chunk in column.chunks]
    return pa.chunked_array(chunks, column.type.value_type)


def _same(table: pa.Table) -> pa.Table:
    return table


def _to_pandas(table: pa.Table) -> Any:
    return table.to_pandas()


def _to_polars(table: pa.Table) -> Any:
    import polars as pl  # noqa: PLC0415 - only for users of polars

    return pl.DataFrame(pl.from_arrow(table))


def _read_table(data: Any) -> Input:
    return Input(data.schema, [data], _same)


def _read_record_batch(data: Any) -> Input:
    return Input(data.schema, [pa.Table.from_batches([data])], _same)


# Readers at their end, which look like those that have no rows.
_spent: WeakSet[Any] = WeakSet()


def _read_reader(data: Any) -> Input:
    if data in _spent:
        raise DataError(
            "this RecordBatchReader has been read, and has no rows left",
            hint="give another one, or a Table: table = reader.read_all()",
        )

    def tables() -> Iterator[pa.Table]:
        for batch in data:
            yield pa.Table.from_batches([batch])
        _spent.add(data)

    return Input(data.schema, tables(), _same)


def _read_batches(data: Iterable[Any]) -> Input:
    batches = iter(data)
    first = next(batches, None)
    if not isinstance(first, pa.RecordBatch | pa.Table):
        found = "nothing in it" if first is None else f"items of type {type(first).__name__}"
        hint = "make a Table of lists with pa.table(...); an iterator can be read only once"
        if isinstance(first, Mapping):
            hint = "make a Table of them with pa.Table.from_pylist(rows, schema=...)"
        raise DataError(f"expected an iterable of RecordBatches, found {found}", hint=hint)

    def tables() -> Iterator[pa.Table]:
        yield _as_table(first, first.schema)
        for batch in batches:
            yield _as_table(batch, first.schema)

    return Input(first.schema, tables(), _same)


def _as_table(batch: Any, schema: pa.Schema) -> pa.Table:
    if not isinstance(batch, pa.RecordBatch | pa.Table):
        raise DataError(
            f"a batch is of type {type(batch).__name__}", hint="give only RecordBatches or Tables"
        )
    if batch.schema != schema:
        raise DataError(
            f"a batch has the schema {batch.schema.to_string()}",
            hint=f"all batches need that of the first, {schema.to_string()}",
        )
    return pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch


_OBJECTS = "it holds Python objects"
_PANDAS_ERRORS = (pa.ArrowException, ValueError, TypeError, OverflowError)


def _read_pandas(data: Any) -> Input:
    # A named index is a column to its user; an unnamed one is only a row number.
    index = data.index.name is not None
    try:
        table = pa.Table.from_pandas(data, preserve_index=index)
    except _PANDAS_ERRORS as error:
        bad = {} if data.columns.has_duplicates else _unreadable(data, pa.table, _PANDAS_ERRORS)
        if not bad:
            raise DataError(
                f"the pandas frame cannot be read: {error}",
                hint="give every column one name and one type, with DataFrame.astype",
            ) from error
        rest = pa.Table.from_pandas(data.drop(columns=[*bad]), preserve_index=index)
        table = _with_unreadable(rest, [*data.columns], bad, "DataFrame.astype")
    table = table.replace_schema_metadata(None)
    return Input(table.schema, [table], _to_pandas)


def _read_polars(data: Any) -> Input:
    import polars as pl  # noqa: PLC0415 - only for users of polars

    errors = (pl.exceptions.PolarsError, pa.ArrowException)
    try:
        frame = data.collect() if isinstance(data, pl.LazyFrame) else data
        # Of these polars would give the addresses.
        bad = {name: _OBJECTS for name, kind in frame.schema.items() if kind == pl.Object}
        try:
            rest = frame.drop([*bad]).to_arrow()
        except errors:
            bad |= _unreadable(frame.drop([*bad]), pl.DataFrame.to_arrow, errors)
            rest = frame.drop([*bad]).to_arrow()
    except errors as error:
        raise DataError(
            f"the polars frame cannot be read: {error}",
            hint="select the columns that the queries use, and cast those that Arrow lacks",
        ) from error
    table = _with_unreadable(rest, frame.columns, bad, "DataFrame.cast")
    return Input(table.schema, [table], _to_polars)


def _unreadable(
    data: Any, read: Callable[[Any], pa.Table], errors: tuple[type[Exception], ...]
) -> dict[Any, str]:
    """The columns of a frame that Arrow has no type for, and why."""
    found = {}
    for name in data.columns:
        try:
            read(data[[name]])
        except errors as error:
            found[name] = str(error.args[0] if error.args else error)
    return found


def _with_unreadable(
    rest: pa.Table, names: list[Any], bad: Mapping[Any, str], remedy: str
) -> pa.Table:
    """The table with such columns in their places; only a query that reads one is refused."""
    for place, name in enumerate(names):
        if name in bad:
            note = {UNREADABLE: f"{bad[name]}\0give it one type, with {remedy}"}
            field = pa.field(str(name), pa.struct([]), metadata=note)
            rest = rest.add_column(place, field, pa.nulls(rest.num_rows, pa.struct([])))
    return rest


def _read_spark(data: Any) -> Input:
    """All rows, collected: static tables travel to every worker."""
    table = data.toArrow()
    return Input(table.schema, [table], _same)


_FILES = "muntin.Files"
_ON_SPARK = ("pyspark.DataFrame", _FILES)
_READERS: dict[str, Callable[[Any], Input]] = {
    "pyarrow.Table": _read_table,
    "pyarrow.RecordBatch": _read_record_batch,
    "pyarrow.RecordBatchReader": _read_reader,
    "pandas.DataFrame": _read_pandas,
    "polars.DataFrame": _read_polars,
    "polars.LazyFrame": _read_polars,
    "pyspark.DataFrame": _read_spark,
    _FILES: _read_spark,
}


def schema_of(given: Any) -> pa.Schema:
    """The columns of a stream: an Arrow schema, a mapping of names to types, or rows like it.

    >>> schema_of({"ts": "timestamp[us]", "v": pa.float64()}).names
    ['ts', 'v']
    """
    if isinstance(given, pa.Schema):
        return read_frame(given.empty_table()).schema
    if is_frame(given):
        return read_frame(given).schema
    if isinstance(given, Mapping):
        try:
            return schema_of(pa.schema([pa.field(str(key), kind) for key, kind in given.items()]))
        except (TypeError, ValueError, pa.ArrowException) as error:
            raise DataError(
                f"the schema cannot be read: {error}",
                hint='give Arrow types, or their names, as in {"ts": pa.timestamp("us", "UTC"), '
                '"v": "double"}',
            ) from error
    raise DataError(
        f"the schema is a {type(given).__name__}",
        hint="give a pyarrow.Schema, a mapping of names to types, or a frame with such columns",
    )


def of_stream(given: Any, name: str, what: str) -> Any:
    """What was given for a stream: one value for all of them, or its own.

    >>> of_stream({"Orders": "ts"}, "orders", "time"), of_stream("at", "orders", "time")
    ('ts', 'at')
    """
    if not isinstance(given, Mapping):
        return given
    found = {str(each).lower(): value for each, value in given.items()}
    if name.lower() not in found:
        raise DataError(
            f"{what} says nothing of {name or 'the input'!r}",
            hint=f"name all streams in it, as in {what}={{{name or 'trades'!r}: ...}}",
        )
    return found[name.lower()]


def check_names(option: str, given: Any, names: Iterable[str | None]) -> None:
    """Refuse an option that is given for a stream which is not there."""
    known = {name.lower(): name for name in names if name}
    for each in given if isinstance(given, Mapping) else ():
        if str(each).lower() not in known:
            raise DataError(
                f"{option} is given for a stream {each!r}, and there is none of that name",
                hint=did_you_mean(str(each), known.values())
                or f"give one {option}, for all streams",
            )


def by_stream(option: str, given: Any, names: Sequence[str | None], default: Any) -> list[Any]:
    """An option of each stream: the same for all, or by name; those not named have the default.

    >>> by_stream("lateness", {"Orders": 5}, ["orders", "payments"], 0)
    [5, 0]
    """
    check_names(option, given, names)
    if not isinstance(given, Mapping):
        return [given] * len(names)
    values = {str(each).lower(): value for each, value in given.items()}
    return [values.get(str(name).lower(), default) for name in names]
