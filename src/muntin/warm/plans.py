"""Kernels compiled ahead: small plans of every kind are run, so that first calls find them on disk.

numba compiles a kernel for the types of its arguments when it is first called. Nothing here names
a kernel: what is run comes from the registries of aggregates, types and strategies, and whatever
kernels that takes are compiled.
"""

from __future__ import annotations

import gc
import logging
import math
import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from decimal import Decimal
from importlib.util import find_spec
from itertools import product
from multiprocessing import get_context
from types import SimpleNamespace
from typing import Any, get_args

import numpy as np
import pyarrow as pa

from muntin.aggregates.registry import BUILT_IN, resolve
from muntin.api import aggregate, stream
from muntin.errors import MuntinError, QueryError
from muntin.expressions import bind_text
from muntin.expressions import types as t
from muntin.plan import SharedPlan, Strategy
from muntin.plan.operators import (
    Column,
    Difference,
    Distinct,
    Exists,
    Join,
    Node,
    RowFinal,
    RowPlan,
    StreamSchema,
    Windowed,
)
from muntin.plan.timeline import Timeline
from muntin.planner import build_plan
from muntin.planner.sharing import Optimizer, OptimizerName
from muntin.queries import queries as read_queries
from muntin.windows.edges import Slicing

_MINUTE = 60_000_000
_BEGIN = 1_381_152_600_000_000
_TYPES = {
    **{name.lower(): kind for kind, name in t.NAMES.items() if kind != t.NULL},
    "decimal": pa.decimal128(10, 2),
    "wide": pa.decimal128(38, 6),
}
# A value of each type that is written in SQL, for predicates.
_LITERALS: dict[str, str] = {
    "boolean": "true",
    "string": "'key5'",
    "binary": "CAST('key5' AS BINARY)",
    "date": "DATE '1970-01-06'",
    "timestamp": "TIMESTAMP '2013-10-07 14:00:00Z'",
    "timestamp_ntz": "TIMESTAMP_NTZ '2013-10-07 14:00:00'",
}
_ODD_NUMBERS = {95: math.nan, 96: math.inf, 97: -math.inf, 98: 5e-324, 99: -1e300}
# Objects between two searches for garbage.
_YOUNG = 50_000
_PICKED = ("bigint", "double", "string", "boolean")
_WINDOWS = ("[RANGE '12 minutes' SLIDE '5 minutes']", "[RANGE '4 minutes' SLIDE '1 minute']")


def warm(processes: int = 2) -> Iterator[tuple[str, int]]:
    """Compile what plans of every kind need; each kind of plan, and how many kernels it took.

    The kinds are dealt out to processes. What is on disk already is not compiled again.

    >>> from muntin.warm import KINDS
    >>> sorted(KINDS)[:2]
    ["Spark's stages", 'aggregates that can be inverted']
    """
    if processes == 1:
        yield from map(_compile, KINDS)
        return
    # Not forked: this process may have threads, which a copy of it lacks.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        yield from pool.map(_compile, KINDS)


def _compile(kind: str) -> tuple[str, int]:
    from muntin._compiled import compilations  # noqa: PLC0415  it brings numba

    logging.getLogger("muntin").setLevel(logging.ERROR)  # this is the time to compile
    before, thresholds = compilations(), gc.get_threshold()
    # A compiler makes millions of objects, among which garbage is looked for all the time.
    gc.set_threshold(_YOUNG, *thresholds[1:])
    try:
        KINDS[kind]()
    finally:
        gc.set_threshold(*thresholds)
    return kind, compilations() - before


def _rows(count: int = 600, *, nulls: bool = True, groups: int = 7, hours: int = 2) -> pa.Table:
    """Rows with a column of every type, named like it, and times that ascend."""
    chance = random.Random(count)
    values = [chance.randrange(100) for _ in range(count)]
    step = hours * 60 * _MINUTE // count
    columns: dict[str, pa.Array] = {
        "ts": pa.array([_BEGIN + place * step for place in range(count)], t.TIMESTAMP),
        "place": pa.array(range(count), t.BIGINT),
        "k": pa.array([f"key{chance.randrange(groups)}" for _ in values]),
        "g": pa.array([chance.randrange(groups) for _ in values]),
    }
    for name, kind in _TYPES.items():
        own = [_value(kind, value) for value in values]
        if nulls:
            own = [None if chance.random() < 0.1 else value for value in own]
        columns[name] = pa.array(own, kind)
    return pa.table(columns)


def _value(kind: pa.DataType, number: int) -> Any:
    if pa.types.is_boolean(kind):
        return number % 2 == 0
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        # Those of eight bytes and fewer, and longer ones, are kept differently.
        text = f"key{number % 20}" if number % 3 else f"a longer key of {number} bytes"
        return text if pa.types.is_string(kind) else text.encode()
    if pa.types.is_decimal(kind):
        return Decimal(number)
    if pa.types.is_floating(kind):
        return _ODD_NUMBERS.get(number, number + 0.1)
    if kind == t.BIGINT:
        return {98: 2**63 - 1, 99: -(2**63)}.get(number, number)
    return _BEGIN + number * _MINUTE if pa.types.is_timestamp(kind) else number


def _varied(count: int = 600, groups: int = 7) -> list[pa.Table]:
    """Rows with NULLs and without, each in memory of both kinds, and very few of them.

    Where all strings are empty, only the memory of their bytes cannot be written.
    """
    some, full = (_rows(count, nulls=nulls, groups=groups) for nulls in (True, False))
    few = empty = full.slice(0, 1)
    for place, field in enumerate(few.schema):
        if pa.types.is_string(field.type) or pa.types.is_binary(field.type):
            empty = empty.set_column(place, field, pa.array([""], field.type))
    return [some, full, few, empty, *(_read_only(rows) for rows in (some, full, few))]


def _read_only(rows: pa.Table) -> pa.Table:
    """The same rows in memory that cannot be written, which is another type to numba."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return pa.ipc.open_stream(pa.py_buffer(sink.getvalue().to_pybytes())).read_all()


def _run(inputs: Sequence[pa.Table], texts: Sequence[str], time: str = "ts", **how: Any) -> None:
    """Answer those queries that can be asked: over the first input, then by its plan."""
    from muntin.engine import LocalEngine  # noqa: PLC0415  it brings numba

    asked = {f"w{place}": text for place, text in enumerate(texts)}
    wrong: set[str | None] = set()
    while True:
        queries = [
            text.replace("SELECT", f"CREATE QUERY {name} AS SELECT", 1)
            for name, text in asked.items()
            if name not in wrong
        ]
        try:
            plan = aggregate(inputs[0], queries, time, **how).plan
            break
        except QueryError as error:
            found = {problem.query for problem in error.problems}
            if found <= wrong:
                raise
            wrong |= found
    assert isinstance(plan, SharedPlan)
    for rows in inputs[1:]:
        engine = LocalEngine(plan, tables=how.get("tables"), threads=pa.cpu_count())
        engine.feed(rows)
        engine.close()


def _calls(invertible: bool) -> Iterator[str]:
    """Every such aggregate of every type, and of every two types where it takes two."""
    ones = [(name,) for name in _TYPES]
    for built_in, names in product(BUILT_IN, [*ones, *product(_PICKED, _TYPES)]):
        try:
            found = resolve(built_in.name, [_TYPES[name] for name in names], built_in.sample)
        except MuntinError:
            continue
        if found.invertible != invertible:
            continue
        call = f"{built_in.name}({', '.join((*names, *map(repr, built_in.sample)))})"
        yield call
        if set(names) <= set(_PICKED):
            yield f"{call} FILTER (WHERE bigint > 50)"
        if built_in.name in ("first", "last"):
            yield f"{call} IGNORE NULLS"


def _aggregates(invertible: bool) -> None:
    """All of them, 25 at a time: what reads one of a plan's accumulators looks at all of them."""
    rows, calls = _varied(60, groups=2), list(_calls(invertible))
    for place in range(0, len(calls), 25):
        named = (f"{call} AS v{number}" for number, call in enumerate(calls[place : place + 25]))
        text = f"SELECT {', '.join(named)} FROM t [RANGE '1 hour' SLIDE '40 minutes']"
        _run(rows, [text, f"{text} GROUP BY k"])


def _groups() -> None:
    keys = [*_TYPES, "k, g", "boolean, string", "bigint % 3", "k, date, double", "upper(k)"]
    texts = [
        f"SELECT sum(double) AS v, max(string) AS m FROM t {_WINDOWS[0]} GROUP BY {key}"
        for key in keys
    ]
    # Alone, an aggregate may be answered in ways of its own.
    alone = ("sum(double)", "avg(bigint)", "count(*)", "max(double)", "last(string)")
    texts += [
        f"SELECT {call} AS v FROM t {window} GROUP BY {key}"
        for call, window, key in product(alone, _WINDOWS, ("k", "upper(k)", "k, g"))
    ]
    _run([*_varied(), _rows(5000, groups=4000)], texts)


def _predicates() -> None:
    texts = [
        f"SELECT sum(double) AS v, min(bigint) AS m, last(string) AS l, count(*) AS n "
        f"FROM t {window} WHERE {name} {op} {_LITERALS.get(name, '50')}{more}{group}"
        for name in _TYPES
        for window in _WINDOWS
        for op in (">", "=")
        for more in ("", " AND bigint > 20")
        for group in ("", " GROUP BY k")
    ]
    texts += [f"SELECT count(*) AS n FROM t {_WINDOWS[0]} WHERE {where}" for where in _ODD]
    _run(_varied(), texts)
    # So many conditions on several quantities, each with another window, that entries are scanned.
    unlike = [
        f"{text} AND double < {90 - place % 80} AND k = 'key{place % 7}'"
        for place, text in enumerate(_unlike(160))
    ]
    _run([_rows(10_000)], unlike, optimizer="all_share")


_ODD = (
    "boolean",
    "NOT boolean",
    "double IS NULL",
    "string IN ('key1', 'key2')",
    "g % 2 = 0",
    "string LIKE 'key1%'",
    "boolean OR bigint < 9",
    "bigint BETWEEN 3 AND 70",
    "k <> 'key3'",
)


def _many(unit: str = " minutes", count: int = 64) -> list[str]:
    """As many queries as share well, and differ in everything."""
    chance = random.Random(256)
    made = []
    for place in range(count):
        size, slide = (f"'{chance.randrange(2, most)}{unit}'" for most in (40, 9))
        column, bound = chance.choice(("bigint", "double", "g")), chance.randrange(90)
        key, by = ("k, ", " GROUP BY k") if place % 3 == 0 else ("", "")
        made.append(
            f"SELECT {key}sum(double * bigint) AS v, avg(int) AS a, max(double) AS m, count(*) AS n"
            f" FROM t [RANGE {size} SLIDE {slide}] WHERE {column} > {bound}{by}"
        )
    return made


def _unlike(count: int) -> list[str]:
    """Queries whose windows have hardly an edge in common, so that sharing is weighed."""
    chance = random.Random(count)
    sizes = [(chance.randrange(60, 3000), chance.randrange(7, 700)) for _ in range(count)]
    return [
        f"SELECT sum(double) AS v FROM t [RANGE '{size} seconds' SLIDE '{slide} seconds']"
        f" WHERE bigint > {chance.randrange(90)}"
        for size, slide in sizes
    ]


def _choices() -> None:
    rows, few = [_rows()], _many(count=12)
    for strategy, slicing in product(get_args(Strategy), get_args(Slicing)):
        _run(rows, few, strategy=strategy, slicing=slicing)
    plain = [text.partition(" WHERE ")[0] for text in _many()[1::3]]
    unlike = _unlike(300)
    for optimizer in get_args(OptimizerName):
        _run(rows, unlike, optimizer=optimizer)
        _run(rows, _many(), optimizer=optimizer)
        _run(rows, plain, optimizer=optimizer)
    _run(rows, few, emit_empty=True)
    # So many windows, and so few rows, that trees are refined.
    many = list(read_queries(_unlike(700)))
    build_plan(many, rows[0].schema, "ts", sharer=Optimizer("auto", 1e-6))


def _shapes() -> None:
    """Rows in other orders and numbers, in pieces, and times of other types."""
    rows = _rows(3000)
    shuffled = rows.take(pa.array(np.random.default_rng(1).permutation(rows.num_rows)))
    halves = pa.concat_tables([rows.slice(0, 1000), rows.slice(1000)])
    large = _rows(20_000, groups=9000).sort_by("double")
    _run([shuffled, halves, rows.slice(0, 0), large, _read_only(shuffled)], _many())
    _run([rows], [text.replace("'", "") for text in _many("")], "place")
    for time in ("date", "timestamp_ntz"):
        _run([rows], _many(" days", 6), time)
    counted = "SELECT sum(double) AS v, max(k) AS m FROM t [ROWS 100 SLIDE 30]"
    _run([rows], [counted, f"{counted} WHERE g > 1 GROUP BY k"])
    _run([rows], ["SELECT count(*) AS n FROM t [RANGE 90 SLIDE 7 WATTR place]"])


def _joins() -> None:
    rows = _rows(nulls=False)
    for name in _TYPES:
        found = rows.select([name]).group_by([name]).aggregate([])
        ranks = pa.array(range(found.num_rows), t.BIGINT)
        labels = pa.array([f"label {rank}" for rank in range(found.num_rows)])
        table = found.append_column("rank", ranks).append_column("label", labels)
        texts = [
            f"SELECT sum(rank) AS v, max(label) AS m FROM t {_WINDOWS[0]} "
            f"{join} JOIN c ON t.{name} = c.{name} WHERE rank > 3{by}"
            for join in ("", "LEFT")
            for by in ("", " GROUP BY label")
        ]
        _run(_varied(), texts, tables={"c": table})


def _streams() -> None:
    """Batches, answers when they are due, queries that join and leave, snapshots."""
    from muntin.streams import LiveEngine  # noqa: PLC0415  it brings numba

    rows = _rows(3000)
    texts = [*_many(), *(f"SELECT {call} AS v FROM t {_WINDOWS[0]}" for call in _STREAMED)]
    asked = list(read_queries(texts))
    plan = build_plan(asked[:-1], rows.schema, "ts")
    engine = LiveEngine(plan, 5 * _MINUTE, optimizer=Optimizer("auto"))
    for start in range(0, 2000, 400):
        engine.feed(rows.slice(start, 400))
    engine.add(asked[-1])
    engine.remove(asked[0].name)
    engine.feed(rows.slice(1800, 700))
    engine.snapshot()
    # Batches that bring less than is kept: finals move on.
    for start in range(2500, 3000, 50):
        engine.feed(rows.slice(start, 50))
    engine.close()
    _questions(rows)


def _questions(rows: pa.Table) -> None:
    """What is kept is put together and asked; a first question has a second."""
    calls = "count(*), sum(double), min(double), max(double), sum(bigint), avg(int), max(string)"
    keep = (
        f"CREATE KEEP kept AS SELECT k, {calls} FROM t [RANGE '1 hour' SLIDE '10 seconds'] "
        "GROUP BY k CUT (bigint > 50)"
    )
    last = "CREATE KEEP last AS SELECT * FROM t [PARTITION BY k ROWS 5]"
    asked = stream(_many()[0], rows.schema, max_ahead=None, keeps=[keep, last])
    for start in range(0, 1800, 150):
        asked.feed(rows.slice(start, 150))
    bounded = "count(*), sum(double), max(double)"
    shapes = (
        ("[RANGE '9 minutes' ALIGNED]", calls),
        ("[RANGE '125 seconds']", bounded),
        ("[ROWS 4]", calls),
    )
    conditions = ("", " WHERE k = 'key1'", " WHERE bigint > 50")
    for (window, some), condition in product(shapes, conditions):
        asked.ask(f"SELECT {some} FROM t {window}{condition}", timeout="1 minute")
        asked.ask(f"SELECT k, {some} FROM t {window}{condition} GROUP BY k", timeout="1 minute")


_STREAMED = (
    "count(DISTINCT string)",
    "sum(DISTINCT double)",
    "median(double)",
    "top_k(string, 2)",
    "max_by(string, bigint, 2)",
    "approx_top_k(bigint, 2, 3)",
    "approx_percentile(double, 0.5)",
    "first(string)",
    "max_by(k, double)",
    "stddev_pop(double)",
    "var_samp(int)",
    "sum(decimal)",
    "product(double)",
    "min(string)",
    "bool_or(boolean)",
)


def _row_queries() -> None:
    """Joins, absences, distinct rows and differences, of few rows and of many."""
    from muntin.operators import RowEngine  # noqa: PLC0415  it brings numba

    rows = _rows(20_000, groups=5000)
    timeline = Timeline.of(rows.schema, "place")
    streams = dict.fromkeys("ab", StreamSchema(rows.schema, timeline))

    def window(stream: str, names: Sequence[str]) -> Windowed:
        columns = [Column(f"{stream}_{name}", bind_text(name, rows.schema)) for name in names]
        return Windowed(stream, 40, None, tuple(columns))

    for names in (["g"], ["string", "decimal"], ["boolean", "double"]):
        left, right = (window(stream, names) for stream in "ab")
        places = tuple(range(len(names)))
        keys = (places, places)
        absent = Exists(left, right, keys, negated=True)
        same = bind_text(f"a_{names[0]} <= b_{names[0]}", Join((left, right), keys).schema)
        # Two joins of one key share their rows; the one below EXISTS has its own.
        roots: list[Node] = [
            Join((left, right), keys),
            Join((replace(left, range=60), right), keys),
            Join((absent, right), keys),
            absent,
            replace(absent, residual=same),
            replace(absent, whole=True),
            Distinct(left),
            Distinct(absent),
            *(Difference(left, right, kind) for kind in ("all", "except", "intersect")),
        ]
        finals = [
            RowFinal(f"q{place}", root, timeline, output="final")
            for place, root in enumerate(roots)
        ]
        finals += [
            RowFinal("pieces", Distinct(left), timeline),
            RowFinal("log", absent, timeline, output="changes"),
            RowFinal("ends", absent, timeline, slide=7, range=40),
            RowFinal("came", absent, timeline, slide=7, range=40, show="istream"),
        ]
        plan = RowPlan(streams, tuple(finals))
        engine = RowEngine(plan)
        for begin, end in ((0, 500), (500, 1000), (1000, 20_000)):
            batch = rows.slice(begin, end - begin)
            engine.feed({"a": batch, "b": batch}, {"a": end, "b": end - 3})
            engine = RowEngine.restore(plan, engine.snapshot())
        engine.close()
    some = _rows()
    computed = "count(*) AS n, avg(a.double) AS v, max(b.string) AS m, last(b.bigint) AS l"
    joined = "FROM a [RANGE 40 SLIDE 7] LEFT JOIN b [RANGE 20] ON a.g = b.g"
    pairs = joined.replace("LEFT ", "")
    texts = [
        f"SELECT {computed} {joined}",
        f"SELECT a.string, {computed} {joined} GROUP BY 1",
        f"SELECT sum(a.bigint * b.bigint) AS p {joined}",
        f"SELECT a.string, {computed}, max(a.bigint - b.bigint) AS d {pairs} GROUP BY 1",
    ]
    aggregate({"a": some, "b": some}, texts, time="place")


def _spark_stages() -> None:
    """What Spark's workers do, in this process: partials packed, split, unpacked and merged."""
    if find_spec("pyspark") is None:
        return
    from muntin.engine.rows.stage_a import StageA  # noqa: PLC0415  they bring numba
    from muntin.engine.state import State  # noqa: PLC0415
    from muntin.engine.wire import from_bytes, split, to_bytes  # noqa: PLC0415
    from muntin.planner.placement.homes import with_homes  # noqa: PLC0415
    from muntin.spark.bounded.shipped import Shipped, packed  # noqa: PLC0415
    from muntin.spark.bounded.tasks import finish, fold  # noqa: PLC0415

    rows = _rows(3000)
    calls = [
        f"SELECT {c} AS v FROM t {_WINDOWS[0]}{by}"
        for c in _STREAMED
        for by in ("", " GROUP BY string", " GROUP BY g, boolean")
    ]
    plan = build_plan(list(read_queries([*_many(), *calls])), rows.schema, "ts")
    for buckets in (1, 2):
        shared = with_homes(plan, buckets)
        data = SimpleNamespace(value=packed(shared, {}))
        shipped = Shipped(data, f"warm {buckets}", buckets)
        halves = [rows.slice(0, 1500), rows.slice(1500)]
        messages = [batch for half in halves for batch in fold(shipped, [half])]
        list(finish(shipped, messages))
        state = State(shared)
        for half in halves:
            partials = StageA(shared, {})(half).partials
            for some in split(shared, list(partials), buckets).values():
                state.take(from_bytes(shared, to_bytes(some, "lz4")), None)
            state.seen = _BEGIN + 60 * _MINUTE
            state.advance(state.seen)
            state = State.restore(shared, state.snapshot())[0]


# The first two share few kernels, so that processes side by side compile few of them twice.
KINDS: dict[str, Callable[[], None]] = {
    "aggregates that can be inverted": lambda: _aggregates(invertible=True),
    "all other aggregates": lambda: _aggregates(invertible=False),
    "tables": _joins,
    "Spark's stages": _spark_stages,
    "strategies and optimizers": _choices,
    "predicates": _predicates,
    "groups": _groups,
    "shapes of data": _shapes,
    "streams": _streams,
    "rows with lifetimes": _row_queries,
}
