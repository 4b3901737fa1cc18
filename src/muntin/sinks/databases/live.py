"""The live table of a query: the rows that are in its answer now, kept so by every batch.

A row of `changes` with '+' comes in, one with '-' takes a row out that is equal to it, and a row
whose end W has reached is dropped. Rows whose ends are known when they come need no '-'.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from muntin.sinks.databases.layout import quoted
from muntin.sinks.sink import SinkError

# By how many a row is more in the table, or less.
SIGN = "muntin-sign"
_LIFETIME = ["valid_from", "valid_to"]
_CHANGES = ["op", "at", *_LIFETIME]
LIVE_HINT = "write CREATE QUERY ... WITH (output = 'changes') AS ..., or use a sink without live"


def is_living(schema: pa.Schema) -> bool:
    """Whether results of these columns have lifetimes, as changes or as rows.

    >>> is_living(pa.schema({"valid_from": pa.int64(), "valid_to": pa.int64(), "id": pa.int64()}))
    True
    >>> is_living(pa.schema({"window_start": pa.int64(), "window_end": pa.int64()}))
    False
    """
    names: list[str] = schema.names
    return names[:2] == _LIFETIME or names[:4] == _CHANGES


def live_schema(schema: pa.Schema) -> pa.Schema:
    """The columns of the live table: the lifetime, then what is selected."""
    leads = len(_CHANGES) - len(_LIFETIME) if schema.names[:4] == _CHANGES else 0
    return pa.schema(list(schema)[leads:])


def signed(rows: pa.Table) -> pa.Table:
    """The rows of a batch as they change the table: the columns of it, and a sign for each."""
    if rows.column_names[:4] == _CHANGES:
        ones = pc.if_else(pc.equal(rows["op"], "+"), 1, -1)
        return rows.drop_columns(["op", "at"]).append_column(SIGN, pc.cast(ones, pa.int64()))
    return rows.append_column(SIGN, pa.array(np.ones(rows.num_rows, np.int64)))


def check_outputs(outputs: Mapping[str, str]) -> None:
    """Refuse queries whose rows come once they have ended: they are never in a live table."""
    late = [query for query, output in outputs.items() if output == "final"]
    if late:
        raise SinkError(
            f"query {late[0]} shows a row once it has ended, so its live table would be empty",
            hint=LIVE_HINT,
        )


def apply_changes(
    target: str, staged: str, columns: Sequence[str], row: str, copies: str
) -> tuple[str, str]:
    """The statements that bring staged rows with signs into a live table.

    Equal rows are counted: what came and went in one batch is netted first.

    Args:
        target: The table, as SQL spells it.
        staged: A query of the table's columns and the sign.
        columns: The columns of the table.
        row: What tells the rows of a table apart.
        copies: SQL that repeats a row ``n`` times in a select list.
    """
    names = ", ".join(map(quoted, columns))
    net = f"SELECT {names}, sum({quoted(SIGN)})::bigint AS n FROM ({staged}) AS s GROUP BY {names}"
    # Starts are never NULL, and plain equality lets a database look them up.
    same = " AND ".join(
        f"kept.{quoted(name)} {'=' if name == _LIFETIME[0] else 'IS NOT DISTINCT FROM'} "
        f"gone.{quoted(name)}"
        for name in columns
    )
    apart = ", ".join(f"kept.{quoted(name)}" for name in columns)
    delete = (
        f"DELETE FROM {target} WHERE {row} IN (SELECT id FROM (SELECT kept.{row} AS id, gone.n, "
        f"row_number() OVER (PARTITION BY {apart}) AS place FROM {target} AS kept "
        f"JOIN ({net}) AS gone ON gone.n < 0 AND {same}) AS found WHERE place <= -n)"
    )
    insert = (
        f"INSERT INTO {target} ({names}) SELECT {names} FROM "
        f"(SELECT {names}, {copies} AS copy FROM ({net}) AS came WHERE n > 0) AS repeated"
    )
    return delete, insert


def drop_ended(target: str) -> str:
    """The statement that drops rows whose ends a time has reached, which is its parameter."""
    return f"DELETE FROM {target} WHERE {quoted(_LIFETIME[1])} <= $1"
