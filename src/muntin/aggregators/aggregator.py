"""One technique at work on one aggregate: slid by one partial, or driven by position."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
import pyarrow as pa

from muntin.aggregates import Aggregate
from muntin.aggregates.algebra import BuiltIn
from muntin.aggregators import snapshots
from muntin.aggregators.card import Card
from muntin.aggregators.contract import OPERATIONS, SIZE, STEPS, evict, insert, query
from muntin.aggregators.sliding import Sliding, objects_of
from muntin.aggregators.snapshots import Positions
from muntin.errors import AggregateError, DataError


class Aggregator:
    """Values or partials in, answers out; the state is the technique's arrays.

    Slid by one partial, a window that is not full yet answers for what is there. By position, the
    caller says what a window spans. The first call decides which of the two it is.

    Attributes:
        card: The technique's card.
        aggregate: What is computed.
        ranges: The windows, in partials, in the order of the answers.
        window: The state, and how it is slid.

    >>> import numpy as np
    >>> from muntin.aggregates import resolve
    >>> from muntin.aggregators import create
    >>> total = resolve("sum", [pa.float64()])
    >>> sums = create("slickdeque_inv", total, ranges=[2])
    >>> sums.run(np.array([1e16, 1.0, 1.0, 0.5])).ravel().tolist()
    [1e+16, 1e+16, 2.0, 1.5]
    >>> sums.insert(0.25)
    (0.75,)
    """

    def __init__(
        self, card: Card, technique: Any, aggregate: Aggregate, ranges: tuple[int, ...]
    ) -> None:
        self.card = card
        self.aggregate = aggregate
        self.ranges = ranges
        self.window = Sliding(technique, aggregate, ranges)
        self.positions: Positions | None = None

    def __repr__(self) -> str:
        ranges = ", ".join(map(str, self.ranges))
        return f"Aggregator({self.card.name}, {self.aggregate.name}, ranges=[{ranges}])"

    @property
    def state(self) -> Any:
        """The technique's arrays."""
        return self.window.state

    @property
    def operations(self) -> int:
        """Combines and inverses so far, or comparisons where a technique only compares."""
        return int(self.state.head[OPERATIONS])

    @property
    def steps(self) -> int:
        """Moves along the deque in search of answers; 0 for techniques without one."""
        return int(self.state.head[STEPS])

    @property
    def nbytes(self) -> int:
        """Bytes of the state's arrays; what Python partials hold is not counted."""
        held: int = sum(array.nbytes for array in self.state)
        return held + (0 if self.positions is None else self.positions.nbytes)

    def insert(self, value: Any, position: int | None = None) -> tuple[Any, ...]:
        """Lift the next value and take it in; NULL is None.

        Without a position, lets go of what no range needs and returns one answer per range. With
        one, `evict` and `query` do that. A partial that is a tuple of the aggregate's own kind is
        taken as it is; `insert_partial` takes partials of every kind.
        """
        partial = value if self._is_own(value) else self._lifted(value)
        return self.insert_partial(partial, position)

    def _lifted(self, value: Any) -> Any:
        aggregate = self.aggregate
        try:
            return aggregate.partial(value)
        except (TypeError, ValueError, LookupError) as error:
            if not isinstance(aggregate, BuiltIn):
                raise
            hint = "give a number, or what the type of its argument says, as in max(string)"
            if aggregate.timed:
                hint = "give the value with its time, as in insert((value, time))"
            elif aggregate.arity[1] > 1:
                hint = "give its arguments together, as in insert((x, y))"
            raise DataError(f"{value!r} is not what {aggregate.name} takes", hint=hint) from error

    def insert_partial(self, partial: Any, position: int | None = None) -> tuple[Any, ...]:
        """Take in the next partial; otherwise as `insert`."""
        if self._is_named and not self._is_own(partial):
            # It would be found out halfway, by a combine.
            raise DataError(
                f"{partial!r} is not a partial of {self.aggregate.name}",
                hint="lift values first, aggregate.lift(value), or give them to insert or run",
            )
        if position is None:
            self._require_slid()
            answers = self.window.slide_objects(objects_of([partial]))
            return tuple(self.aggregate.lower(answer) for answer in answers[0])
        positions = self._positions()
        positions.append(position)
        self.window.reserve(len(positions.held()))
        insert(self.window.op, self.state, partial)
        return ()

    def run(self, values: Any) -> npt.NDArray[Any]:
        """Lift and insert values one by one; answers in an array of shape (steps, ranges).

        Compiled for counts, sums, averages, variances and extremes of integers, floats and
        booleans; Python partials otherwise. The array has the type of the answers if the kernels
        ran and no answer is NULL, otherwise it holds Python objects.

        Args:
            values: A numpy array of the argument's type, an Arrow array, or rows as the aggregate
                takes them.
        """
        self._require_slid()
        return self.window.run(values)

    def evict(self, before: int) -> int:
        """Let go of the partials before a position; returns how many went."""
        positions = self._positions()
        count = positions.before(before)
        for _ in range(count):
            evict(self.window.op, self.state)
        positions.drop(count)
        return count

    def query(self, since: int) -> Any:
        """The answer for the partials at `since` or after it."""
        return self.aggregate.lower(self.partial(since))

    def partial(self, since: int) -> Any:
        """The combination of the partials at `since` or after it."""
        size = self._positions().since(since)
        held = int(self.state.head[SIZE])
        if size < held and not self.card.several_ranges:
            raise AggregateError(
                f"{self.card.name} answers for all {held} partials it holds, not for {size}",
                hint=f"evict(before={since}) first, or use a technique that takes several ranges",
            )
        if size == 0:
            return self.aggregate.identity
        return query(self.window.op, self.state, size)

    @property
    def size(self) -> int:
        """How many partials are held by position."""
        return 0 if self.positions is None else len(self.positions.held())

    def snapshot(self) -> pa.RecordBatch:
        """The state as one row of Arrow lists; Python partials are pickled."""
        return snapshots.take(self)

    def restore(self, snapshot: pa.RecordBatch) -> None:
        """Go on from a snapshot of an aggregator built alike."""
        snapshots.restore(self, snapshot)

    @property
    def _is_named(self) -> bool:
        """Whether partials are tuples of a kind that values are not."""
        return hasattr(self.aggregate.identity, "_fields")

    def _is_own(self, given: Any) -> bool:
        return self._is_named and isinstance(given, type(self.aggregate.identity))

    def _positions(self) -> Positions:
        if self.positions is None:
            if self.window.slid:
                raise AggregateError(
                    f"{self!r} is slid by one", hint="drive it by position from the start"
                )
            self.window.start_empty()
            self.positions = Positions()
        return self.positions

    def _require_slid(self) -> None:
        if not self.ranges:
            raise AggregateError(
                f"{self!r} has no range to answer", hint="create it with ranges, or give positions"
            )
        if self.positions is not None:
            raise AggregateError(
                f"{self!r} is driven by position", hint="give every partial a position"
            )
