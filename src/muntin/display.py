"""Counts and tables as people read them, in messages and in notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

_PLURALS = {
    "batch": "batches",
    "edge class": "edge classes",
    "entry": "entries",
    "query": "queries",
    "row of results": "rows of results",
    "set of partials": "sets of partials",
}


def count(number: int, noun: str) -> str:
    """A number of things.

    >>> count(1, "query"), count(4096, "query"), count(0, "row")
    ('1 query', '4,096 queries', '0 rows')
    """
    return f"{number:,} {noun if number == 1 else _PLURALS.get(noun, f'{noun}s')}"


def html_facts(title: str, facts: Mapping[str, str]) -> str:
    """A title above a table of names and values, for notebooks.

    >>> print(html_facts("A < B", {"rows": "12"}))
    <p>A &lt; B</p>
    <table><tbody><tr><th>rows</th><td>12</td></tr></tbody></table>
    """
    rows = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in facts.items()
    )
    return f"<p>{escape(title)}</p>\n<table><tbody>{rows}</tbody></table>"


def html_table(table: pa.Table, total: int) -> str:
    """A table for notebooks; an ellipsis below where there are more rows in total."""
    head = "".join(f"<th>{escape(name)}</th>" for name in table.column_names)
    rows = []
    shown = [_texts(column) for column in table.columns]
    for row in zip(*shown, strict=True):
        cells = "".join(f"<td>{escape(text)}</td>" for text in row)
        rows.append(f"<tr>{cells}</tr>")
    if total > table.num_rows:
        rows.append(f"<tr><td colspan='{table.num_columns}'>…</td></tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def html_result(name: str, head: pa.Table, total: int) -> str:
    """The first rows of a query's result, which can be folded away."""
    size = count(total, "row")
    return (
        f"<details open><summary>{escape(name)}: {size}</summary>\n"
        f"{html_table(head, total)}\n</details>"
    )


def _texts(column: pa.ChunkedArray) -> list[str]:
    from pyarrow.types import is_temporal  # noqa: PLC0415 - the command line counts without it

    if is_temporal(column.type):
        # Arrow writes years beyond 9999, which Python's datetime does not have.
        column = column.cast("string")
    return ["" if value is None else str(value) for value in column.to_pylist()]
