"""Results of one query whose columns changed while the stream ran."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

import pyarrow as pa

from muntin.sinks.sink import SinkError


def fingerprint(schema: pa.Schema) -> str:
    """A short name of the columns, their types and order; metadata makes no difference.

    >>> one = pa.schema({"a": pa.int64()})
    >>> fingerprint(one) == fingerprint(one.with_metadata({"k": "v"}))
    True
    """
    bare = pa.schema([pa.field(field.name, field.type) for field in schema])
    return hashlib.sha256(bare.serialize().to_pybytes()).hexdigest()[:8]


def pick(query: str, version: int, fingerprints: Sequence[str]) -> str:
    """The fingerprint of a version; they count from 0, in the order of their first results.

    >>> pick("q", 1, ["a", "a", "b", "a"])
    'b'
    """
    ordered = list(dict.fromkeys(fingerprints))
    if not 0 <= version < len(ordered):
        count = f"{len(ordered)} version" + ("" if len(ordered) == 1 else "s")
        raise SinkError(
            f"the results of {query} have {count}, there is no {version}",
            hint="versions count from 0",
        )
    return ordered[version]


def unite(query: str, schemas: Sequence[pa.Schema]) -> pa.Schema:
    """One schema for all versions: columns of any version, each with its one type.

    Columns that a version lacks are NULL there. A column whose type changed has no common
    type that keeps every value and its meaning, so that is refused.
    """
    fields: dict[str, pa.Field] = {}
    for schema in schemas:
        for field in schema:
            known = fields.setdefault(field.name, pa.field(field.name, field.type))
            if known.type != field.type:
                raise SinkError(
                    f"the results of {query} have {len(schemas)} versions, and column "
                    f"{field.name} is {known.type} in one and {field.type} in another",
                    hint=f"read one version at a time: table({query!r}, version=0), and so on",
                )
    return pa.schema(list(fields.values()))


def concat(query: str, tables: Sequence[pa.Table]) -> pa.Table:
    """All rows as one table, whatever version of the query they are from.

    >>> concat("q", [pa.table({"a": [1]}), pa.table({"a": [2], "b": [3]})]).to_pylist()
    [{'a': 1, 'b': None}, {'a': 2, 'b': 3}]
    """
    distinct = list({fingerprint(table.schema): table.schema for table in tables}.values())
    schema = unite(query, distinct)
    aligned = [
        pa.table(
            [
                table[field.name]
                if field.name in table.column_names
                else pa.nulls(table.num_rows, field.type)
                for field in schema
            ],
            schema=schema,
        )
        for table in tables
    ]
    return pa.concat_tables(aligned) if aligned else schema.empty_table()


# A key begins with the bounds of the window.
BOUNDS = 2
_KEY = b"muntin.key"


def with_key(schema: pa.Schema, columns: Sequence[str]) -> pa.Schema:
    """The same columns, and a note that these of them are the key: window bounds and groups.

    >>> schema = pa.schema({"window_end": pa.int64(), "symbol": pa.string(), "n": pa.int64()})
    >>> key_of(with_key(schema, ["window_end", "symbol"]))
    ('window_end', 'symbol')
    """
    noted = {**(schema.metadata or {}), _KEY: json.dumps(list(columns)).encode()}
    return schema.with_metadata(noted)


def key_of(schema: pa.Schema) -> tuple[str, ...]:
    """The columns of the key; none where nobody has said."""
    noted = (schema.metadata or {}).get(_KEY)
    return () if noted is None else tuple(json.loads(noted))
