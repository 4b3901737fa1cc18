"""What each table of a foreign file is for: a stream, a joined table, or a sink."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from sqlglot import exp

from muntin.pipelines.importing.statements import ForeignQuery, ForeignStatement, ForeignTable

Role: TypeAlias = Literal["stream", "table", "sink"]
_SINKS = ("print", "blackhole")


def roles(statements: Sequence[ForeignStatement]) -> dict[str, Role]:
    """The role of every table that is declared or read, by its name in lower case.

    Views are written out before. What is inserted into is a sink; what a query reads first, or
    has a watermark, a stream; and what is only joined a table.
    """
    found: dict[str, Role] = {}
    for statement in statements:
        if isinstance(statement, ForeignTable):
            name = statement.name.lower()
            found.setdefault(name, _declared(statement))
    for statement in statements:
        if isinstance(statement, ForeignTable) and statement.select is not None:
            found[statement.name.lower()] = "sink"
        elif isinstance(statement, ForeignQuery) and statement.sink is not None:
            found[statement.sink.name.lower()] = "sink"
    for statement in statements:
        if isinstance(statement, ForeignTable | ForeignQuery) and statement.select is not None:
            _read(statement.select, found)
    return found


def _declared(table: ForeignTable) -> Role:
    connector = next((one.value for one in table.options if one.key.lower() == "connector"), "")
    if connector.lower() in _SINKS:
        return "sink"
    kafka = "kafka" in (connector.lower(), (table.using or "").lower())
    return "stream" if table.watermarks or kafka else "table"


def _read(select: exp.Expr, found: dict[str, Role]) -> None:
    source = select.args.get("from_")
    table = None if source is None else source.this
    if isinstance(table, exp.Table) and found.get(table.name.lower()) != "sink":
        found[table.name.lower()] = "stream"
    for join in select.args.get("joins") or ():
        name = join.this.name.lower() if isinstance(join.this, exp.Table) else ""
        if name and join.this.args.get("version") is not None and found.get(name) != "sink":
            found[name] = "table"
        elif name:
            found.setdefault(name, "table")
