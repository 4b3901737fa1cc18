"""All values in order of time: collect_list and string_agg."""

from __future__ import annotations

from typing import Any, ClassVar

import pyarrow as pa

from muntin.aggregates.algebra import Part
from muntin.aggregates.holistic.runs import Run, Runs, spelled_out
from muntin.aggregates.types import require_ordered
from muntin.errors import AggregateError


class CollectList(Runs):
    """All values in order of event time; of one time, in order of the values.

    NULL is left out, as in Spark, unless `keeps_nulls`.

    >>> CollectList((pa.string(),)).of([("b", 20), ("z", 10), (None, 15), ("a", 20)])
    ['z', 'a', 'b']
    """

    name = "collect_list"
    aliases: ClassVar[tuple[str, ...]] = ("array_agg", "list")
    timed = True

    def __init__(
        self,
        types: tuple[pa.DataType, ...],
        constants: tuple[Any, ...] = (),
        keeps_nulls: bool = False,
    ) -> None:
        super().__init__(types, constants)
        self.skips_nulls = not keeps_nulls

    def lift(self, value: tuple[Any, Any]) -> Run:
        """A value and its time."""
        return (((value[1], value[0]), 1),)

    def lower(self, partial: Run) -> Any:
        """An empty list for no values."""
        return [value for _, value in spelled_out(partial)]

    def result_type(self, types: tuple[pa.DataType, ...]) -> pa.DataType:
        """A list."""
        require_ordered(self.name, types[0])
        return pa.list_(types[0])

    @property
    def parts(self) -> tuple[Part, ...]:
        """Values by time, of their own kind where NULL is kept."""
        return (Part("list" if self.skips_nulls else "list_nulls", self.types),)


class StringAgg(CollectList):
    """All texts in order of event time, with a separator between them.

    >>> StringAgg((pa.string(),), (", ",)).of([("b", 20), ("a", 10)])
    'a, b'
    """

    name = "string_agg"
    aliases = ("listagg", "group_concat")
    constants: ClassVar[dict[str, Any]] = {"separator": ""}
    sample = ("-",)

    def check(self) -> None:
        """A text."""
        if not isinstance(self.given[0], str):
            raise AggregateError(
                f"the separator of string_agg is a string, not {self.given[0]!r}",
                hint="write string_agg(x, ', ')",
            )

    def lower(self, partial: Run) -> Any:
        """NULL for no values."""
        return self.given[0].join(super().lower(partial)) if partial else None

    def result_type(self, types: tuple[pa.DataType, ...]) -> pa.DataType:
        """A text."""
        if types[0] not in (pa.string(), pa.large_string()):
            raise AggregateError(
                f"string_agg takes strings, not {types[0]}", hint="write CAST(x AS STRING)"
            )
        return types[0]
