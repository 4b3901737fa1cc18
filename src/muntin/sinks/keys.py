"""Which columns tell the rows of a query's results apart."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa

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
