"""The views of a foreign file, written out in its queries."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from muntin.pipelines.importing.notes import Notes
from muntin.pipelines.importing.reading import Entry
from muntin.pipelines.importing.statements import ForeignQuery, ForeignTable
from muntin.pipelines.importing.views import View, bare, expand, plain_view

VIEW_HINT = "queries that read it read its source, with its conditions and columns"


def write_out_views(entries: Sequence[Entry], notes: Notes) -> None:
    """Write out views that only filter and compute, and computed columns, where they are read.

    A view that aggregates stays a query.
    """
    views: dict[str, View] = {}
    for number, entry in enumerate(entries):
        one, notes.statement = entry.foreign, number
        if not isinstance(one, ForeignTable | ForeignQuery):
            continue
        if isinstance(one, ForeignTable) and (computed := _computed(one)):
            # A stream with computed columns is read through a view of its own name.
            views[one.name.lower()] = View(one.name, computed)
        if isinstance(one.select, exp.Select):
            expand(one.select, views)
        name = one.view if isinstance(one, ForeignQuery) else None
        view = plain_view(one.select) if name and one.select is not None else None
        if name and view is not None:
            views[name.lower()] = view
            notes.add(one.start, "the view is written out", VIEW_HINT, lost=False)
            entry.foreign, entry.settled = None, True


def _computed(table: ForeignTable) -> dict[str, exp.Expr]:
    """The computed columns of a table; its time must stand in the rows."""
    times = [mark.column.lower() for mark in table.watermarks]
    return {
        column.name.lower(): bare(column.computed)
        for column in table.columns or ()
        if column.computed is not None and column.name.lower() not in times
    }
