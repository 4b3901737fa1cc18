"""Evaluates bound expressions on Arrow batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from muntin.expressions.binding.bound import Bound
from muntin.expressions.storage import standard
from muntin.expressions.tree import Column

if TYPE_CHECKING:
    from muntin.expressions.evaluation.program import Program


@dataclass(frozen=True)
class Evaluated:
    """One expression's values for a batch.

    `values` has exactly the bound type and the batch's length. `errors` marks the values that
    failed, which are NULL; it is None when none did.
    """

    values: pa.Array
    errors: pa.Array | None = None


Run = Callable[[pa.Table], list[Evaluated]]


class Evaluator:
    """Evaluates a fixed list of expressions, compiled once, on any number of batches.

    Common parts of the expressions are computed once per batch. A plain column is handed over as
    it is, a constant computed once for all batches.

    >>> from muntin.expressions import bind_text
    >>> batch = pa.table({"a": [6, 7, None], "b": [2, 0, 1]})
    >>> [ratio] = Evaluator([bind_text("a div b", batch.schema)])(batch)
    >>> ratio.values.to_pylist(), ratio.errors.to_pylist()
    ([3, None, None], [False, True, False])
    """

    def __init__(self, bounds: Sequence[Bound]) -> None:
        self.bounds = tuple(bounds)
        self._columns: dict[int, str] = {}
        self._constants: dict[int, Evaluated] = {}
        computed: list[int] = []
        for index, bound in enumerate(self.bounds):
            if isinstance(bound.root, Column):
                self._columns[index] = bound.root.name
            elif not bound.columns:
                self._constants[index] = _program([bound]).run(pa.table({"": [None]}))[0]
            else:
                computed.append(index)
        self._computed = _computations([(index, self.bounds[index]) for index in computed])

    def __reduce__(self) -> tuple[type[Evaluator], tuple[tuple[Bound, ...]]]:
        return Evaluator, (self.bounds,)

    def __call__(self, batch: pa.RecordBatch | pa.Table) -> list[Evaluated]:
        """The values of every expression, in their order."""
        if isinstance(batch, pa.RecordBatch):
            batch = pa.Table.from_batches([batch])
        computed: dict[int, Evaluated] = {}
        for indices, run in self._computed:
            computed.update(zip(indices, run(batch), strict=True))
        return [self._one(index, batch, computed) for index in range(len(self.bounds))]

    def _one(self, index: int, batch: pa.Table, computed: dict[int, Evaluated]) -> Evaluated:
        if index in computed:
            return computed[index]
        if index in self._columns:
            column = standard(batch.column(self._columns[index]), self.bounds[index].type)
            return Evaluated(single(column))
        constant = self._constants[index]
        values = repeated(constant.values, batch.num_rows)
        if constant.errors is None or batch.num_rows == 0:
            return Evaluated(values)
        return Evaluated(values, repeated(constant.errors, batch.num_rows))


def _computations(numbered: Sequence[tuple[int, Bound]]) -> list[tuple[list[int], Run]]:
    """How numbered expressions are computed: plain arithmetic apart from all else."""
    from muntin.expressions.evaluation.direct import Direct, is_direct  # noqa: PLC0415  (needs `Evaluated`)

    plain = [(index, bound) for index, bound in numbered if is_direct(bound)]
    other = [(index, bound) for index, bound in numbered if not is_direct(bound)]
    found: list[tuple[list[int], Run]] = []
    if plain:
        bounds = [bound for _, bound in plain]
        found.append(([index for index, _ in plain], _or_else(Direct(bounds).run, bounds)))
    if other:
        run = _program([bound for _, bound in other]).run
        found.append(([index for index, _ in other], run))
    return found


def _or_else(direct: Callable[[pa.Table], list[Evaluated] | None], bounds: Sequence[Bound]) -> Run:
    """The direct way, and the general one for batches that it refuses."""
    general: list[Program] = []

    def run(batch: pa.Table) -> list[Evaluated]:
        found = direct(batch)
        if found is not None:
            return found
        if not general:
            general.append(_program(bounds))
        return general[0].run(batch)

    return run


def _program(bounds: Sequence[Bound]) -> Program:
    # Polars takes a while to load, and must not be loaded in a process that others are forked from.
    from muntin.expressions.evaluation.program import Program  # noqa: PLC0415

    return Program(bounds)


def single(column: pa.ChunkedArray) -> pa.Array:
    """The column as one array; no copy when it has one chunk."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def repeated(one: pa.Array, length: int) -> pa.Array:
    """An array of one value, as long as asked."""
    if one.type == pa.null():
        return pa.nulls(length)
    return pa.repeat(one[0], length)
