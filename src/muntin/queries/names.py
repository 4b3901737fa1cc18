"""Which column of a stream or of a joined table a name in a query means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from muntin.errors import ExpressionError, did_you_mean
from muntin.queries.source import shown


@dataclass(frozen=True)
class Origin:
    """A stream or table that columns come from.

    Attributes:
        label: What qualifies its columns in the query.
        columns: What each of its columns is called among the joined ones, and by itself; None
            where nothing is known about them.
        merged: Columns, in lower case, that are no others than those of an origin before.
    """

    label: str
    columns: Mapping[str, str] | None
    merged: frozenset[str] = frozenset()

    def find(self, name: str) -> list[str]:
        """The joined names of the columns of a name, in any letter case."""
        columns = self.columns or {}
        return [joined for joined, own in columns.items() if own.lower() == name.lower()]


class Names:
    """Finds columns by name, with a qualifier or without.

    >>> names = Names(Origin("t", {"a": "a", "k": "k"}))
    >>> names.add(Origin("c", {"close.k": "k"}))
    >>> names.find(exp.column("k", "C"))
    'close.k'
    >>> names.find(exp.column("k"))
    Traceback (most recent call last):
    muntin.errors.ExpressionError: column k is ambiguous
    Hint: write t.k or c.k
    """

    def __init__(self, *origins: Origin) -> None:
        self.origins: list[Origin] = []
        self._joined: dict[str, str] = {}
        for origin in origins:
            self.add(origin)

    def add(self, origin: Origin) -> None:
        """Adds what is joined next."""
        self.origins.append(origin)
        for joined, own in (origin.columns or {}).items():
            if joined != own:
                self._joined[joined.lower()] = joined

    def find(self, column: exp.Expr) -> str | None:
        """The joined name of a column; None if it may be one of which nothing is known.

        A column may also be called by its joined name.
        """
        qualifier = column.text("table").lower()
        if qualifier:
            origins = [origin for origin in self.origins if origin.label.lower() == qualifier]
        else:
            origins = self.origins
        name = column.name.lower()
        if not qualifier and name in self._joined:
            return self._joined[name]
        found = [
            (origin, joined)
            for origin in origins
            if qualifier or name not in origin.merged
            for joined in origin.find(name)
        ]
        if len(found) > 1:
            raise _ambiguous(column, [origin for origin, _ in found])
        if not found and any(origin.columns is None for origin in origins):
            return None
        if not found:
            raise _unknown(column, origins)
        return found[0][1]


def _ambiguous(column: exp.Expr, origins: list[Origin]) -> ExpressionError:
    name = shown(column.name)
    labels = list(dict.fromkeys(origin.label for origin in origins))
    if len(labels) > 1:
        hint = f"write {' or '.join(f'{shown(label)}.{name}' for label in labels)}"
    else:
        hint = "names are compared regardless of case; rename one of them"
    return ExpressionError(f"column {name} is ambiguous", hint=hint)


def _unknown(column: exp.Expr, origins: list[Origin]) -> ExpressionError:
    known = {own for origin in origins for own in (origin.columns or {}).values()}
    where = f" in {shown(origins[0].label)}" if len(origins) == 1 else ""
    hint = did_you_mean(column.name, known) or f"there are {len(known)} columns{where}"
    # What stands before a dot may have been meant for the name of a stream or table.
    other = column.meta.get("qualifier")
    what = "no column, stream or table" if other else "no column"
    return ExpressionError(f"{what} {shown(column.name)}{where}", hint=other or hint)
