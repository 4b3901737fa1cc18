"""The types of Spark's and Flink's columns, as Muntin calls them."""

from __future__ import annotations

from sqlglot import exp

from muntin.errors import MuntinError
from muntin.expressions.grammar import named_type
from muntin.expressions.types import name_of
from muntin.pipelines.importing.statements import ForeignColumn

_KIND = exp.DataType.Type
_TEXTS = (_KIND.VARCHAR, _KIND.NVARCHAR, _KIND.CHAR, _KIND.NCHAR, _KIND.TEXT)
_BYTES = (_KIND.VARBINARY, _KIND.BINARY)
_TIMES = (_KIND.TIMESTAMP, _KIND.TIMESTAMPTZ, _KIND.TIMESTAMPLTZ, _KIND.TIMESTAMPNTZ)
# Flink's TIMESTAMP has no zone, Spark's has one.
_BARE_TIMES = (_KIND.TIMESTAMP, _KIND.TIMESTAMPTZ)
_FULL_DIGITS = 6


def column_type(column: ForeignColumn, flink: bool) -> str | None:
    """The name of a column's type, or None if there is none for it.

    >>> column_type(ForeignColumn("a", 0, exp.DataType.build("VARCHAR(10)")), flink=True)
    'STRING'
    >>> column_type(ForeignColumn("a", 0, exp.DataType.build("TIMESTAMP(3)")), flink=True)
    'TIMESTAMP_NTZ'
    """
    if column.kind is None:
        return "BINARY" if column.written.upper() == "BYTES" else None
    try:
        return name_of(named_type(_plain(column.kind, flink)))
    except (MuntinError, ValueError):
        return None


def _plain(node: exp.DataType, flink: bool) -> exp.DataType:
    """A type without the sizes that Muntin does not keep."""
    if node.this in _TEXTS:
        return exp.DataType(this=_KIND.TEXT)
    if node.this in _BYTES:
        return exp.DataType(this=_KIND.BINARY)
    if node.this in _TIMES:
        bare = flink and node.this in _BARE_TIMES
        return exp.DataType(this=_KIND.TIMESTAMPNTZ if bare else node.this)
    return node


def spell_casts(node: exp.Expr, flink: bool) -> None:
    """Give the types of casts the names that expressions know, where they mean the same.

    A cast that would cut something off, such as to VARCHAR(10), is left as it is.
    """
    for cast in list(node.find_all(exp.Cast, exp.TryCast)):
        target = cast.args["to"]
        sizes = [size.name for size in target.expressions]
        wide = not sizes or (target.this in _TIMES and sizes[0] == str(_FULL_DIGITS))
        if isinstance(target, exp.DataType) and wide:
            cast.set("to", _plain(target, flink))
