"""Retroactive relations: an update holds for rows that came before it."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

import muntin
from muntin.errors import DataError, QueryError

ORDERS = {"ts": "int64", "id": "int64", "buyer": "string"}
LEVELS = pa.schema({"buyer": pa.string(), "level": pa.int64()})
JOINED = """CREATE QUERY q WITH (output = 'changes') AS
  SELECT o.id, l.level FROM orders [RANGE 10] o {0}JOIN levels l ON o.buyer = l.buyer"""


def levels(*rows: tuple[str | None, int]) -> pa.Table:
    """Rows of the relation."""
    return pa.table([list(each) for each in zip(*rows, strict=True)] or [[], []], schema=LEVELS)


def orders(*rows: tuple[int, int, str | None]) -> pa.Table:
    """Rows of the stream."""
    return pa.table(dict(zip(ORDERS, map(list, zip(*rows, strict=True)), strict=True)))


def opened(sql: str, *rows: tuple[str | None, int], **options: Any) -> Any:
    """A stream beside a relation that holds some rows."""
    return muntin.stream(sql, {"orders": ORDERS}, relations={"levels": levels(*rows)}, **options)


def shown(results: Any) -> list[tuple[Any, ...]]:
    """Changes as tuples."""
    return [tuple(row.values()) for row in results["q"].to_pylist()]


def test_an_update_changes_what_was_there_before() -> None:
    # time      1    3 | update |  6
    # order 7   [----------------------------)
    # ann = 1   ---------)
    # ann = 2            [----------------
    stream = opened(JOINED.format(""), ("ann", 1))
    found = shown(stream.feed(orders((1, 7, "ann"), (3, 8, "bob"))))
    stream.update("levels", insert=levels(("ann", 2)), delete=levels(("ann", 1)))
    found += shown(stream.feed(orders((6, 9, "eve"))))
    found += shown(stream.close())
    assert found == [
        ("+", 1, 1, 11, 7, 1),
        ("-", 4, 1, 11, 7, 1),
        ("+", 4, 4, 11, 7, 2),
    ]


def test_left_joins_pad_while_there_is_no_row() -> None:
    stream = opened(JOINED.format("LEFT "))
    found = shown(stream.feed(orders((1, 7, "ann"))))
    stream.update("levels", insert=levels(("ann", 5)))
    found += shown(stream.feed(orders((4, 8, None))))
    found += shown(stream.close())
    assert found == [
        ("+", 1, 1, 11, 7, None),
        ("-", 2, 1, 11, 7, None),
        ("+", 2, 2, 11, 7, 5),
        ("+", 4, 4, 14, 8, None),
    ]


@pytest.mark.parametrize("seed", range(6))
def test_every_instant_is_right(seed: int) -> None:
    rng = random.Random(seed)
    kind = rng.choice(["", "LEFT "])
    held = Counter((rng.choice(["a", "b", None]), rng.randrange(2)) for _ in range(4))
    stream = opened(JOINED.format(kind), *held.elements(), lateness=3)
    history = [(-100, Counter(held))]
    rows, found, now = [], [], -1
    for number in range(40):
        if rng.random() < 0.5:
            gone = rng.sample(list(held.elements()), min(rng.randrange(3), held.total()))
            fresh = [
                (rng.choice(["a", "b", None]), rng.randrange(2)) for _ in range(rng.randrange(3))
            ]
            if gone or fresh:
                stream.update("levels", insert=levels(*fresh), delete=levels(*gone))
                held = held - Counter(gone) + Counter(fresh)
                history.append((now + 1, Counter(held)))
        else:
            time = max(now - rng.randrange(3), 0) if rng.random() < 0.4 else now + rng.randrange(4)
            row = (max(time, 0), number, rng.choice(["a", "b", "c", None]))
            rows.append(row)
            now = max(now, row[0])
            found += shown(stream.feed(orders(row)))
        if rng.random() < 0.2:
            data = stream.snapshot()
            stream = opened(JOINED.format(kind), lateness=3, snapshot=data)
    found += shown(stream.close())
    for instant in range(now + 15):
        [*_, relation] = [each for begin, each in history if begin <= instant]
        expected = Counter[Any]()
        for ts, number, buyer in rows:
            if ts <= instant < ts + 10:
                met = [v for (b, v) in relation.elements() if buyer is not None and b == buyer]
                expected.update((number, v) for v in met or ([None] if kind else []))
        alive = Counter[Any]()
        for op, at, _, end, *values in found:
            if at <= instant < end:
                alive[tuple(values)] += 1 if op == "+" else -1
        assert +alive == expected, instant


def test_rows_that_are_gone_are_forgotten() -> None:
    stream = opened(JOINED.format(""))
    for batch in range(40):
        rows = levels(*((str(number), batch) for number in range(200)))
        stream.update("levels", insert=rows)
        stream.feed(orders((batch * 3, batch, "5"), (batch * 3 + 1, batch, "6")))
        stream.update("levels", delete=rows)
    assert stream.progress().kept["q"] < 3000


def test_a_query_that_joins_later_finds_what_the_relation_holds() -> None:
    stream = opened("SELECT id FROM orders [RANGE 1]", ("ann", 1))
    stream.feed(orders((1, 7, "ann")))
    stream.update("levels", insert=levels(("ann", 2)))
    stream.feed(orders((5, 8, "ann")))
    stream.add(JOINED.format(""))
    found = shown(stream.feed(orders((20, 9, "ann"))))
    found += shown(stream.close())
    assert {row[4:] for row in found} == {(9, 1), (9, 2)}


def test_a_snapshot_is_resumed_with_the_relations_it_was_taken_with() -> None:
    sql, data = JOINED.format(""), opened(JOINED.format(""), ("ann", 1)).snapshot()
    other = pa.table({"buyer": ["ann"], "level": [1.5]})
    with pytest.raises(DataError, match="the columns buyer string, level double, and had buyer"):
        muntin.stream(sql, {"orders": ORDERS}, relations={"levels": other}, snapshot=data)
    both = {"levels": levels(), "more": other}
    with pytest.raises(DataError, match="the relation more was not in the snapshot"):
        muntin.stream(sql, {"orders": ORDERS}, relations=both, snapshot=data)


def test_what_is_wrong_is_refused_and_changes_nothing() -> None:
    stream = opened(JOINED.format(""), ("ann", 1))
    with pytest.raises(DataError, match=r"does not hold the row .*'eve'"):
        stream.update("levels", delete=levels(("ann", 1), ("eve", 1)))
    with pytest.raises(DataError, match="as often"):
        stream.update("levels", delete=levels(("ann", 1), ("ann", 1)))
    with pytest.raises(DataError, match="no relation 'level'") as told:
        stream.update("level", insert=levels())
    assert "levels" in str(told.value)
    with pytest.raises(DataError, match="columns buyer"):
        stream.update("levels", insert=pa.table({"buyer": ["a"]}))
    assert shown(stream.feed(orders((1, 7, "ann")))) + shown(stream.close()) == [
        ("+", 1, 1, 11, 7, 1)
    ]
    with pytest.raises(QueryError, match="shown as changes"):
        opened(JOINED.format("").replace("WITH (output = 'changes')", ""))
    with pytest.raises(QueryError, match="there is no stream levels"):
        opened("CREATE QUERY q WITH (output = 'changes') AS SELECT buyer FROM levels [RANGE 5]")
    with pytest.raises(DataError, match="this process only"):
        muntin.run({}, "", relations={"levels": levels()})
