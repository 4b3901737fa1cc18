"""Every built-in aggregate with every type it takes, and rows to feed it."""

import datetime as dt
import decimal
import math
import os
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from muntin.aggregates import resolve
from muntin.aggregates.columns import by_part
from muntin.aggregates.registry import BUILT_IN
from muntin.errors import AggregateError

# Kernels compile inside the first example. There are hundreds of cases, so each draws few
# examples; MUNTIN_EXAMPLES asks for more.
relaxed = settings(
    deadline=None,
    max_examples=int(os.environ.get("MUNTIN_EXAMPLES", "10")),
    suppress_health_check=list(HealthCheck),
)

UTC = dt.UTC


def _decimals(precision: int, scale: int) -> st.SearchStrategy[decimal.Decimal]:
    context = decimal.Context(prec=40)
    limit = 10**precision - 1
    units = st.one_of(st.integers(-limit, limit), st.integers(-3, 3), st.just(limit))
    return units.map(lambda unit: decimal.Decimal(unit).scaleb(-scale, context))


_SMALL_FLOATS = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.1, 1e16, math.nan, math.inf, -math.inf])
_DOUBLES = st.one_of(
    st.floats(),
    _SMALL_FLOATS,
    st.sampled_from([5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, -1e308]),
)
_TIMES = st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30))

VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int8(): st.integers(-(2**7), 2**7 - 1),
    pa.int16(): st.integers(-(2**15), 2**15 - 1),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.one_of(
        st.integers(-(2**63), 2**63 - 1),
        st.sampled_from([-(2**63), 2**63 - 1, 0, 1, -1]),
    ),
    pa.uint64(): st.one_of(st.integers(0, 2**64 - 1), st.integers(0, 3)),
    pa.float32(): st.floats(width=32),
    pa.float64(): _DOUBLES,
    pa.decimal128(10, 2): _decimals(10, 2),
    pa.decimal128(18, 18): _decimals(18, 18),
    pa.decimal128(38, 4): _decimals(38, 4),
    pa.string(): st.text(max_size=4),
    pa.binary(): st.binary(max_size=3),
    pa.bool_(): st.booleans(),
    pa.date32(): st.dates(),
    pa.timestamp("us"): _TIMES,
    pa.timestamp("us", "UTC"): _TIMES.map(lambda time: time.replace(tzinfo=UTC)),
}


class Case(NamedTuple):
    """An aggregate bound to types, as `resolve` takes it."""

    name: str
    types: tuple[pa.DataType, ...]
    constants: tuple[Any, ...] = ()


def _accepted() -> list[Case]:
    """Each name with each combination of types that it does not refuse.

    Of aggregates that are read off the same part, one has all types.
    """
    some = (pa.int64(), pa.float64(), pa.string())
    pairs = [(x, y) for x in some for y in some]
    tried = [(), *((kind,) for kind in VALUES), *pairs]
    found: list[Case] = []
    for built_in in BUILT_IN:
        alike = built_in.name in _ALIKE
        for types in [*((kind,) for kind in some), pairs[1], pairs[5]] if alike else tried:
            case = Case(built_in.name, types, built_in.sample)
            try:
                resolve(*case)
            except AggregateError:
                continue
            found.append(case)
    return found


_ALIKE = (
    *("covar_pop", "covar_samp", "regr_slope", "regr_intercept", "regr_r2", "skewness"),
    *("bit_and", "bit_or", "any_value"),
    *("sum_distinct", "avg_distinct", "count_distinct", "percentile", "percentile_disc", "mode"),
    *("frequent", "min_k", "min_by_k", "max_by_k", "string_agg", "median"),
    *("approx_top_k", "approx_frequent"),
)
CASES = _accepted()
# Types whose values become the same partials as those of a wider or plainer one.
_WIDENED = {
    *(pa.int8(), pa.int16(), pa.int32(), pa.float32(), pa.decimal128(18, 18)),
    *(pa.binary(), pa.date32(), pa.timestamp("us", "UTC")),
}
# For what happens to partials once they are made: `CASES` is for how they are made.
KINDS = [case for case in CASES if _WIDENED.isdisjoint(case.types)]


def case_id(case: Case) -> str:
    types = "-".join(str(kind).replace(" ", "") for kind in case.types)
    return f"{case.name}-{types or 'rows'}"


def arrays(types: tuple[pa.DataType, ...], size: int) -> st.SearchStrategy[tuple[pa.Array, ...]]:
    """Arguments of these types, NULL among them."""
    return st.tuples(
        *(
            st.lists(st.none() | VALUES[kind], min_size=size, max_size=size).map(
                lambda items, kind=kind: pa.array(items, kind)
            )
            for kind in types
        )
    )


def python_rows(timed: bool, args: tuple[pa.Array, ...], times: np.ndarray) -> list[Any]:
    """What the scalar algebra is lifted from."""
    lists = [array.to_pylist() for array in args]
    if timed:
        lists.append(times.tolist())
    return lists[0] if len(lists) == 1 else list(zip(*lists, strict=True)) or [()] * len(times)


def expected(algebra: Any, rows: list[Any]) -> tuple[Any, bool]:
    """The scalar answer, and whether it failed."""
    try:
        return algebra.of(rows), False
    except OverflowError:
        return None, True


def answers(resolved: Any, cols: list[Any]) -> list[tuple[Any, bool]]:
    """The columnar answers, and whether they failed."""
    values, errors = resolved.lower(cols)
    assert values.type == resolved.type
    failed = [False] * len(values) if errors is None else errors.to_pylist()
    return list(zip(values.to_pylist(), failed, strict=True))


def update_all(cols: list[Any], cells: np.ndarray, args: tuple[pa.Array, ...], times: Any) -> None:
    for column in cols:
        column.update(cells, tuple(args[i] for i in column.part.args), times)


def empty_columns(resolved: Any, size: int) -> list[Any]:
    return [by_part.empty(part, size) for part in resolved.parts]
