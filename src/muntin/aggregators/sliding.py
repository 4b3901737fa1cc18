"""The state of a technique as it is slid: on Python partials, or on integers in kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from muntin._typing import Ints
from muntin.aggregates import Aggregate
from muntin.aggregators import contract, rings
from muntin.aggregators.contract import store_fields
from muntin.aggregators.inputs import sized
from muntin.aggregators.operators import Objects, Store, Sum

if TYPE_CHECKING:
    from muntin.aggregators.encodings.encoding import Encoding, Values

_SMALLEST = 16
# Integers that are lifted, or answered, at a time: few enough for a cache, many enough for a call.
_CACHED = 1 << 17


class Sliding:
    """A technique's state, its operator, and the way between Python partials and kernels.

    Attributes:
        op: The operator of the state.
        state: The technique's arrays.
        encoding: What the state's integers mean; None for Python partials.
        slid: How many partials were slid in.
    """

    def __init__(self, technique: Any, aggregate: Aggregate, ranges: tuple[int, ...]) -> None:
        self.technique = technique
        self.aggregate = aggregate
        # Kernels answer each range once, the largest first.
        self.falling: Ints = np.array(sorted(set(ranges), reverse=True), np.int64)
        falling = self.falling.tolist()
        self.order = [falling.index(size) for size in ranges]
        self.encoding: Encoding | None = None
        self.op: Any = Objects(aggregate)
        self.slid = 0
        if falling:
            self.state: Any = self._full(self.op)
        else:
            self.start_empty()

    @property
    def window(self) -> int:
        """The largest range."""
        return int(self.falling[0]) if len(self.falling) else _SMALLEST

    def _full(self, op: Any) -> Any:
        return self.technique.create(op, self.window, len(self.falling), True)

    def start_empty(self) -> None:
        """Hold no partials, to be driven by position."""
        columns = max(len(self.falling), 1)
        self.state = self.technique.create(self.op, _SMALLEST, columns, False)

    def reserve(self, size: int) -> None:
        """Have room for `size` partials."""
        if size > rings.room(self.state):
            self._grow()

    def _grow(self) -> None:
        self.state = rings.grown(self.op, self.state, 2 * rings.room(self.state))

    def slide_objects(self, partials: Store) -> npt.NDArray[Any]:
        """Slide Python partials; answers, not lowered, by partial and range."""
        self._become_objects()
        answers = np.empty(len(partials) * len(self.falling), np.object_)
        self._slide(contract.slide, partials, answers)
        return answers.reshape(len(partials), len(self.falling))[:, self.order]

    def _slide(self, slide: Any, partials: Store, answers: Store) -> None:
        done = slide(self.op, self.state, self.falling, partials, answers, 0)
        while done < len(partials):
            self._grow()
            done = slide(self.op, self.state, self.falling, partials, answers, done)
        self.slid += len(partials)

    def run(self, values: Any) -> npt.NDArray[Any]:
        """Slide values; answers by value and range."""
        # Deferred: the kernels bring numba, which Python partials do without.
        from muntin.aggregators.encodings import registry  # noqa: PLC0415

        values = sized(values)
        encoding = self.encoding or registry.narrowest(self.aggregate, self.window)
        if encoding is not None:
            typed = registry.values_of(self.aggregate, values)
            wider = self._covering(encoding, typed)
            if wider is not None:
                self._become(wider)
                return self._run_compiled(typed)
        return self.run_objects(_python_rows(values))

    def run_objects(self, rows: Sequence[Any]) -> npt.NDArray[Any]:
        """Slide rows as Python partials."""
        partials = objects_of([self.aggregate.partial(row) for row in rows])
        answers = self.slide_objects(partials)
        lowered = objects_of([self.aggregate.lower(answer) for answer in answers.flat])
        return lowered.reshape(answers.shape)

    def _run_compiled(self, values: Values) -> npt.NDArray[Any]:
        """Lift, slide and lower a cacheful at a time."""
        from muntin.aggregators.kernels import slide_compiled  # noqa: PLC0415

        assert self.encoding is not None
        columns = len(self.falling)
        out: npt.NDArray[Any] = np.empty((len(values.items), columns), self.encoding.dtype)
        if self.encoding.direct:
            self._slide(slide_compiled, self.encoding.lift(values, out), out.reshape(-1))
            return self._ordered(out)
        nulls: list[tuple[int, npt.NDArray[np.bool_]]] = []
        overflow: OverflowError | None = None
        size = min(max(_CACHED // (columns * self.encoding.width), 1), len(out))
        lifted, answers = self.op.empty(size), self.op.empty(size * columns)
        for start in range(0, len(out), max(size, 1)):
            chunk = values.part(start, start + size)
            count = len(chunk.items)
            rows = self._rows(count) if self.encoding.needs_rows else answers
            partials = self.encoding.lift(chunk, lifted[:count])
            self._slide(slide_compiled, partials, answers[: count * columns])
            flat = out[start : start + count].reshape(-1)
            try:
                missing = self.encoding.lower(answers[: count * columns], rows, flat)
            except OverflowError as error:
                # The other values are still slid in, as they would be one by one.
                overflow, missing = error, None
            if missing is not None and missing.any():
                nulls.append((start * columns, missing))
        if overflow is not None:
            raise overflow
        return self._ordered(_with_nulls(out, nulls) if nulls else out)

    def _rows(self, count: int) -> Ints:
        """How many partials there are in each of the next answers."""
        if self.slid >= self.window:
            rows: Ints = np.broadcast_to(self.falling, (count, len(self.falling))).reshape(-1)
            return rows
        slid = self.slid + 1 + np.arange(count)
        return np.minimum(slid[:, None], self.falling).reshape(-1)

    def _ordered(self, answers: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return answers if self.order == list(range(answers.shape[1])) else answers[:, self.order]

    def _covering(self, encoding: Encoding, values: Values) -> Encoding | None:
        if self.encoding is None and self.slid:
            self.state = _rebased(self.op, self.state)
            held = [partial for store in self._stores() for partial in store]
            widened = encoding.of_partials(held)
            return None if widened is None else widened.covering(values)
        return encoding.covering(values)

    def _become(self, encoding: Encoding) -> None:
        """Bring the state into an encoding that covers it."""
        if self.slid and self.encoding != encoding:
            self.state = _rebased(self.op, self.state)
        held, self.encoding, self.op = self.encoding, encoding, encoding.op
        if not self.slid:
            self.state = self._full(self.op)
        elif held is None:
            self._replace_stores([encoding.encoded(store) for store in self._stores()])
        elif held != encoding:
            counts = self._row_counts() if held.implies_rows else None
            self._replace_stores(
                [
                    held.widened(store, encoding, None if counts is None else counts[i])
                    for i, store in enumerate(self._stores())
                ]
            )

    def _become_objects(self) -> None:
        if self.encoding is None:
            return
        self.state = _rebased(self.op, self.state)
        held, self.encoding, self.op = self.encoding, None, Objects(self.aggregate)
        counts = self._row_counts() if held.implies_rows else None
        self._replace_stores(
            [
                held.decoded(store, None if counts is None else counts[i])
                for i, store in enumerate(self._stores())
            ]
        )

    def _row_counts(self) -> list[Ints]:
        """How many rows each stored partial holds, if every partial slid in was one row.

        What an additive technique does with partials does not depend on their values, so a run
        over ones tells.
        """
        from muntin.aggregators.kernels import slide_compiled  # noqa: PLC0415

        op = Sum()
        state = self._full(op)
        answers = np.empty(_CACHED * len(self.falling), np.int64)
        for start in range(0, self.slid, _CACHED):
            ones = np.ones(min(_CACHED, self.slid - start), np.int64)
            slide_compiled(op, state, self.falling, ones, answers, 0)
        state = _rebased(op, state)
        return [getattr(state, name) for name in store_fields(self.technique)]

    def _stores(self) -> list[Store]:
        return [getattr(self.state, name) for name in store_fields(self.technique)]

    def _replace_stores(self, stores: Sequence[Store]) -> None:
        named = dict(zip(store_fields(self.technique), stores, strict=True))
        self.state = self.state._replace(**named)


def _rebased(op: Any, state: Any) -> Any:
    own = getattr(state, "rebased", None)
    return state if own is None else own(op, state)


def _with_nulls(
    answers: npt.NDArray[Any], nulls: list[tuple[int, npt.NDArray[np.bool_]]]
) -> npt.NDArray[Any]:
    """The answers as Python objects, None where they are NULL."""
    out = objects_of(answers.ravel().tolist())
    for start, missing in nulls:
        out[start + np.flatnonzero(missing)] = None
    return out.reshape(answers.shape)


def objects_of(partials: Sequence[Any]) -> Store:
    """Python objects as an array, also where they are sequences themselves."""
    out = np.empty(len(partials), np.object_)
    for i, partial in enumerate(partials):
        out[i] = partial
    return out


def _python_rows(values: Any) -> list[Any]:
    if hasattr(values, "to_pylist"):
        return list(values.to_pylist())
    return list(values.tolist() if isinstance(values, np.ndarray) else values)
