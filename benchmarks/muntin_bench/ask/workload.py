"""What is kept and asked: 64 queries, a keep of an hour by a second, and questions of 20 shapes."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import combinations, islice, product
from typing import Self

import pyarrow as pa

from muntin.synopses import Answer, Covers
from muntin.testing import trades

SEED = 21
QUERIES = 64
SYMBOLS = 300
PER_SECOND = 100
# Trades in a second of event time.
RATE = 280
KEEP = (
    "CREATE KEEP recent AS SELECT symbol, max(price), sum(vol), count(*)"
    " FROM trades [RANGE '1 hour' SLIDE '1 second'] GROUP BY symbol"
)
_CALLS = ("max(price) AS high", "sum(vol) AS vol", "count(*) AS n")
_LISTS = [", ".join(some) for size in (1, 2, 3) for some in combinations(_CALLS, size)]
_WAYS = (" ALIGNED", " AS OF WATERMARK ALIGNED")
_POINT = [f"SELECT {calls} FROM trades [RANGE '{{}} minutes'{way}]" for calls, way in
          product(_LISTS, _WAYS)]  # fmt: skip
# Windows that begin inside a slice: answers have bounds.
_POINT += [f"SELECT {calls} FROM trades [RANGE '{{}} minutes']"
           for calls in (_CALLS[0], _CALLS[2], f"{_CALLS[0]}, {_CALLS[2]}",
                         f"{_CALLS[2]}, {_CALLS[0]}")]  # fmt: skip
POINT = tuple(f"{text} WHERE symbol = '{{}}'" for text in _POINT)
# About 100,000 entries: 16 minutes in which some 105 of 300 symbols are traded every second.
_WIDE = f"SELECT symbol, {', '.join(_CALLS)} FROM trades [RANGE '{{}} minutes' ALIGNED]"
WIDE = (f"{_WIDE} GROUP BY symbol", f"{_WIDE} GROUP BY symbol ORDER BY n DESC LIMIT 10")
WIDE_MINUTES = 16
SHAPES = len(POINT) + len(WIDE)


@dataclass
class Asked:
    """How long questions took, in milliseconds; one in ten is of all groups."""

    point: list[float] = field(default_factory=list)
    wide: list[float] = field(default_factory=list)

    @property
    def all(self) -> list[float]:
        """Those of both kinds, from the shortest on."""
        return sorted([*self.point, *self.wide])

    def __iadd__(self, other: Asked) -> Self:
        self.point += other.point
        self.wide += other.wide
        return self


def queries() -> str:
    """Grouped queries over different windows."""
    rnd = random.Random(SEED)
    return "\n".join(
        f"CREATE QUERY q{number} AS SELECT symbol, sum(vol) AS v, max(price) AS m, count(*) AS c"
        f" FROM trades [RANGE '{rnd.randint(5, 30)} minutes' SLIDE '{rnd.randint(1, 5)} minutes']"
        " GROUP BY symbol;"
        for number in range(QUERIES)
    )


def data_of(rows: int) -> pa.Table:
    """Seeded trades, as many a second of event time always."""
    columns = ["ts", "symbol", "price", "vol"]
    return trades(rows, symbols=SYMBOLS, seconds=rows / RATE).select(columns)


def questions(symbols: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Questions without end, and whether each is of all groups: nine of ten are of one symbol."""
    rnd = random.Random(SEED)
    while True:
        for place in range(10):
            if place == 9:
                yield rnd.choice(WIDE).format(WIDE_MINUTES), True
            else:
                yield rnd.choice(POINT).format(rnd.randint(1, 50), rnd.choice(symbols)), False


@contextmanager
def asking(
    ask: Callable[[str], Answer], symbols: Sequence[str], rate: int = PER_SECOND
) -> Iterator[Asked]:
    """Ask at a steady rate until the end of the block; how long each question took is in there.

    A question that comes late, since one before it took long, counts from when it was due.
    """
    found, done = Asked(), threading.Event()
    failures: list[BaseException] = []

    def work() -> None:
        begin = time.perf_counter()
        for number, (sql, is_wide) in enumerate(questions(symbols)):
            due = begin + number / rate
            # One call: what waits in Python takes as much of the interpreter as a question.
            time.sleep(max(due - time.perf_counter(), 0.0))
            if done.is_set():
                return
            try:
                # An answer that nobody looks at has no table yet.
                _ = ask(sql).table
            except BaseException as error:
                failures.append(error)
                return
            taken = 1000 * (time.perf_counter() - due)
            (found.wide if is_wide else found.point).append(taken)

    thread = threading.Thread(target=work, name="muntin-bench-questions")
    thread.start()
    try:
        yield found
    finally:
        done.set()
        thread.join()
    if failures:
        raise failures[0]


def warmed(ask: Callable[[str], Answer], symbols: Sequence[str]) -> None:
    """Ask every shape once."""
    for sql, _ in islice(questions(symbols), 10 * SHAPES):
        ask(sql)


def of_duckdb(sql: str, covers: Covers) -> str:
    """The question over the rows of the window that it covers."""
    head, _, tail = sql.partition(" [RANGE")
    condition = f"ts >= '{covers.start}' AND ts < '{covers.end}'"
    rest = tail.partition("]")[2]
    if " WHERE " in rest:
        return f"{head} {rest} AND {condition}"
    return f"{head} WHERE {condition}{rest}"


def percentile(values: Sequence[float], percent: int) -> float:
    """The value below which so many percent of them lie; they are sorted."""
    return values[min(len(values) * percent // 100, len(values) - 1)] if values else 0.0


def latency(about: str, found: Asked) -> list[tuple[str, str]]:
    """Rows of a table: medians and 99th percentiles of both kinds of questions."""
    kinds = (("of one symbol", sorted(found.point)), ("of all symbols", sorted(found.wide)))
    return [
        (
            f"{about}, {kind}: median, p99 of {len(values):,}",
            f"{percentile(values, 50):.2f}, {percentile(values, 99):.2f} ms",
        )
        for kind, values in kinds
    ]
