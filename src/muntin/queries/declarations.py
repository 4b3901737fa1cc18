"""What a SQL file declares beside queries: streams, tables and sinks, as they are written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import pyarrow as pa
from sqlglot import exp

from muntin.errors import ExpressionError
from muntin.expressions.binding.grammar import named_type
from muntin.queries.report import Report
from muntin.queries.source import SourceText, position, shown
from muntin.queries.sql.clauses import CreateSinkNode, CreateSourceNode

SourceKind: TypeAlias = Literal["stream", "table"]

# Streams and sinks name folders and tables elsewhere.
MAX_NAME = 100
TYPE_HINT = (
    "use BOOLEAN, an integer type, FLOAT, DOUBLE, DECIMAL, STRING, DATE or TIMESTAMP, "
    "or ARRAY<...> and STRUCT<name: type> of them"
)
_KIND = exp.DataType.Type
_TIMES = (_KIND.TIMESTAMP, _KIND.TIMESTAMPTZ, _KIND.TIMESTAMPLTZ, _KIND.TIMESTAMPNTZ)
_PRECISIONS = [[str(digits)] for digits in range(7)]


@dataclass(frozen=True)
class Reference:
    """A name, and the offset it was written at."""

    name: str
    start: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Option:
    """One option of WITH: its key and its value, as they are written.

    ``start`` is the offset of the key, ``at`` that of the value.
    """

    key: str
    value: str = field(repr=False)
    start: int = field(default=0, compare=False)
    at: int = field(default=0, compare=False)


@dataclass(frozen=True)
class CreateSource:
    """CREATE STREAM or CREATE TABLE; ``columns`` is None where they are to be found out."""

    kind: SourceKind
    name: str
    columns: pa.Schema | None
    options: tuple[Option, ...]
    start: int = field(default=0, compare=False)
    text: SourceText = field(default_factory=SourceText, compare=False)


@dataclass(frozen=True)
class CreateSink:
    """CREATE SINK, for some queries by name or for all."""

    name: str
    queries: tuple[Reference, ...]
    options: tuple[Option, ...]
    start: int = field(default=0, compare=False)
    text: SourceText = field(default_factory=SourceText, compare=False)


Declaration: TypeAlias = CreateSource | CreateSink


def declare(node: CreateSourceNode | CreateSinkNode, report: Report) -> Declaration:
    """What a statement declares; what is wrong with it is reported."""
    name = node.this.name
    check_name(node.this, report)
    options = _options(node.args["options"], report)
    if isinstance(node, CreateSinkNode):
        names = tuple(reference(each) for each in node.args.get("queries") or ())
        return CreateSink(name, names, options, report.start, report.text)
    columns = node.args.get("columns")
    schema = None if columns is None else _schema(columns, report)
    return CreateSource(node.args["kind"], name, schema, options, report.start, report.text)


def reference(node: exp.Expr) -> Reference:
    """A name and its place."""
    return Reference(node.name, position(node) or 0)


def check_name(node: exp.Expr, report: Report) -> None:
    """Report a name that is none for a stream, table or sink."""
    name = node.name
    if not name or not (name.isascii() and name.replace("_", "a").isalnum()):
        message = f"{shown(name)!r} is not a name here: ASCII letters, digits and _ only"
        report.add(node, message, "write a name such as trades")
    elif len(name) > MAX_NAME:
        report.add(node, f"a name of more than {MAX_NAME} letters", "shorten it")


def _options(nodes: list[exp.Expr], report: Report) -> tuple[Option, ...]:
    options: dict[str, Option] = {}
    for node in nodes:
        key = str(node.args["this"])
        # Options of Kafka and Spark tell letter case apart, ours do not.
        option = Option(key, str(node.args["value"]), position(node) or 0, node.args["at"])
        if key.lower() in options:
            report.add(node, f"the option {shown(key)} is given twice", "keep one of them")
        options.setdefault(key.lower(), option)
    return tuple(options.values())


def _schema(nodes: list[exp.Expr], report: Report) -> pa.Schema:
    fields: dict[str, pa.Field] = {}
    for node in nodes:
        name = node.this.name
        if not name:
            report.add(node, "a column without a name", "write a name such as price")
        elif name.lower() in fields:
            hint = "rename one of them: letter case makes no difference"
            report.add(node, f"there are two columns named {shown(name)}", hint)
        fields.setdefault(name.lower(), pa.field(name, _type(node, report)))
    return pa.schema(list(fields.values()))


def _type(column: exp.Expr, report: Report) -> pa.DataType:
    node, written = column.args["kind"], column.args["written"]
    try:
        return _named(node)
    except (ExpressionError, ValueError):
        report.add(
            column.args["kind"], f"a column cannot have the type {shown(written)}", TYPE_HINT
        )
        return pa.null()


def _named(node: exp.DataType) -> pa.DataType:
    """The type of a column: one that expressions have, or arrays and structs of such types."""
    if node.this == _KIND.ARRAY and len(node.expressions) == 1:
        return pa.list_(_named(node.expressions[0]))
    if node.this == _KIND.STRUCT and node.expressions:
        fields = [pa.field(each.name, _named(each.args["kind"])) for each in _fields(node)]
        return pa.struct(fields)
    if node.this in _TIMES and [size.name for size in node.expressions] in _PRECISIONS:
        # TIMESTAMP(3), as Flink has it: times are kept in microseconds whatever it says.
        node = exp.DataType(this=node.this)
    return named_type(node)


def _fields(node: exp.DataType) -> list[exp.ColumnDef]:
    """The fields of a struct, which all have different names."""
    fields = [each for each in node.expressions if isinstance(each, exp.ColumnDef)]
    names = {each.name.lower() for each in fields if each.args.get("kind") is not None}
    if len(names) < len(node.expressions):
        raise ValueError("a field without a name or a type, or two of one name")
    return fields
