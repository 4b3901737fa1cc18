"""What a run over bounded data gives back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from itertools import islice
from typing import Any, Protocol

import pyarrow as pa

from muntin.display import count, html_result
from muntin.errors import DataError, UnknownQueryError, did_you_mean
from muntin.plan import SharedPlan
from muntin.plan.operators import RowPlan

_SHOWN_ROWS = 10
_SHOWN_QUERIES = 20


class Answer(Protocol):
    """The result of one query, wherever it is kept."""

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        ...

    def table(self) -> pa.Table:
        """All rows as a pyarrow Table."""
        ...

    def head(self, rows: int) -> pa.Table:
        """A few rows."""
        ...

    def frame(self) -> Any:
        """All rows in the kind of frame the data came in."""
        ...


@dataclass(frozen=True)
class TableAnswer:
    """A result in the memory of this process, and the way to the user's kind of frame."""

    result: pa.Table
    restore: Callable[[pa.Table], Any]

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return int(self.result.num_rows)

    def table(self) -> pa.Table:
        """All rows."""
        return self.result

    def head(self, rows: int) -> pa.Table:
        """A few rows."""
        return self.result.slice(0, rows)

    def frame(self) -> Any:
        """All rows in the kind of frame the data came in."""
        return self.restore(self.result)


@dataclass
class Outcome:
    """What the queries over one input gave: results by name, and what was counted.

    ``seconds`` are what workers spent on each step, all of them together.
    """

    answers: Mapping[str, Answer]
    rows: int = 0
    bad_rows: int = 0
    errors: Mapping[str, int] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)


class Results(Mapping[str, Any]):
    """Results by query name, in the kind of frame the data came in.

    Besides the frames it holds the plan that made them, the number of rows read, the rows that
    had no time (``bad_rows``), and per query how many values failed (``errors``). ``row_plan`` is
    the plan of queries over rows with lifetimes, if there are some.
    """

    def __init__(
        self,
        answers: Mapping[str, Answer],
        plan: SharedPlan | dict[str, SharedPlan],
        *,
        rows: int = 0,
        bad_rows: int = 0,
        errors: Mapping[str, int] | None = None,
        row_plan: RowPlan | None = None,
    ) -> None:
        self._answers = dict(answers)
        self._names = {name.lower(): name for name in answers}
        self.plan = plan
        self.row_plan = row_plan
        self.rows = rows
        self.bad_rows = bad_rows
        self.errors = {name: count for name, count in (errors or {}).items() if count}

    def __getitem__(self, name: str) -> Any:
        return self._answers[self._known(name)].frame()

    def table(self, name: str) -> pa.Table:
        """The result of a query as a pyarrow Table, whatever kind the data was."""
        return self._answers[self._known(name)].table()

    def plot(self, name: str, *, axes: Any = None) -> Any:
        """Draw a query's result: a line for each group, windows on the axis.

        It needs matplotlib. In a script, ``matplotlib.pyplot.show()`` shows what was drawn.

        Args:
            name: The query.
            axes: Where to draw; a figure of its own if not given.

        Returns:
            matplotlib's axes, or an array of them where there are several aggregates.
        """
        from muntin.charts import draw  # noqa: PLC0415 - an extra

        known = self._known(name)
        return draw(self.table(known), known, self._groups(known), axes)

    def _groups(self, name: str) -> int:
        """How many group columns a result has, after the bounds of its window."""
        plans = self.plan.values() if isinstance(self.plan, dict) else [self.plan]
        finals = (final for plan in plans for final in plan.finals)
        found = next((len(final.grouping) for final in finals if final.name == name), None)
        if found is None:
            raise DataError(
                f"query {name} shows rows, which have no windows to draw",
                hint="draw aggregates, or the frame itself",
            )
        return found

    def _known(self, name: str) -> str:
        known = self._names.get(name.lower()) if isinstance(name, str) else None
        if known is None:
            raise UnknownQueryError(
                f"there is no query {name!r}", hint=did_you_mean(str(name), self._answers)
            )
        return known

    def __iter__(self) -> Iterator[str]:
        return iter(self._answers)

    def __len__(self) -> int:
        return len(self._answers)

    def __repr__(self) -> str:
        lines = [f"Results of {count(len(self), 'query')} over {count(self.rows, 'row')}"]
        for name, answer in islice(self._answers.items(), _SHOWN_QUERIES):
            failed = f", {count(self.errors[name], 'failed value')}" if name in self.errors else ""
            lines.append(f"  {name}: {count(answer.num_rows, 'row')}{failed}")
        if len(self) > _SHOWN_QUERIES:
            lines.append(f"  ... and {len(self) - _SHOWN_QUERIES:,} more")
        if self.bad_rows:
            lines.append(f"  without a time and left out: {count(self.bad_rows, 'row')}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The first rows of every result, for notebooks."""
        parts = [f"<p>{escape(repr(self).splitlines()[0])}</p>"]
        for name, answer in islice(self._answers.items(), _SHOWN_QUERIES):
            parts.append(html_result(name, answer.head(_SHOWN_ROWS), answer.num_rows))
        if len(self) > _SHOWN_QUERIES:
            parts.append(f"<p>... and {len(self) - _SHOWN_QUERIES:,} more</p>")
        return "\n".join(parts)
