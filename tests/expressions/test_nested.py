"""Fields of structs and elements of arrays, in every layout that a column may have."""

from __future__ import annotations

import datetime as dt
import pickle
from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa
import pytest

import muntin
from muntin.errors import QueryError
from muntin.expressions import BindingError, Evaluator, bind_text
from muntin.queries import queries

INNER = pa.struct([("d", pa.date32()), ("xs", pa.list_(pa.int64()))])
ROWS = pa.table(
    {
        "ts": [0, 1, 2, 6],
        "l": pa.array(
            [
                {"a": 1, "B c": "x", "n": {"d": dt.date(2020, 2, 29), "xs": [1, 2]}},
                None,
                {"a": None, "B c": "y", "n": None},
                {"a": 4, "B c": "x", "n": {"d": None, "xs": []}},
            ],
            pa.struct([("a", pa.int32()), ("B c", pa.string()), ("n", INNER)]),
        ),
        "arr": pa.array([[1, 2, 3], [], None, [None]], pa.list_(pa.int64())),
        "deep": [[{"x": 1.5}], [None], [], None],
        "m": pa.array([[("k", 1)], None, [], []], pa.map_(pa.string(), pa.int64())),
        "v": [1, 2, 3, 4],
    }
)
ALL = [
    ("l['a'] + 1", [2, None, None, 5], []),
    ("L['A']", [1, None, None, 4], []),
    ("l['b C']", ["x", None, "y", "x"], []),
    ("year(l['n']['d'])", [2020, None, None, None], []),
    ("l['n'].xs[1]", [2, None, None, None], [3]),
    ("arr[0]", [1, None, None, None], [1]),
    ("arr[2]", [3, None, None, None], [1, 3]),
    ("arr[1 + 1]", [3, None, None, None], [1, 3]),
    ("arr[-1]", [None] * 4, [0, 1, 3]),
    ("element_at(arr, 1)", [1, None, None, None], [1]),
    ("element_at(arr, -1)", [3, None, None, None], [1]),
    ("element_at(arr, 0)", [None] * 4, [0, 1, 3]),
    ("try_element_at(arr, 3)", [3, None, None, None], []),
    ("get(arr, 1)", [2, None, None, None], []),
    ("size(arr)", [3, 0, None, 1], []),
    ("array_size(arr) + cardinality(deep)", [4, 1, None, None], []),
    ("size(l['n'].xs)", [2, None, None, 0], []),
    ("get(arr, -1)", [None] * 4, []),
    ("coalesce(get(arr, 1), v)", [2, 2, 3, 4], []),
    ("deep[0].x", [1.5, None, None, None], [2]),
    ("arr[0] > 0 OR v > 1", [True, None, True, True], [1]),
    ("v > 1 OR arr[0] > 0", [True, True, True, True], []),
]


@pytest.mark.parametrize(("text", "values", "failed"), ALL)
def test_parts(text: str, values: list[object], failed: list[int]) -> None:
    bound = pickle.loads(pickle.dumps(bind_text(text, ROWS.schema)))
    evaluate = Evaluator([bound])
    for rows in (ROWS, pa.concat_tables([ROWS.slice(0, 1), ROWS.slice(1, 0), ROWS.slice(1)])):
        [found] = evaluate(rows)
        errors = [] if found.errors is None else found.errors.to_pylist()
        assert found.values.to_pylist() == values
        assert [row for row, error in enumerate(errors) if error] == failed
    assert bound.can_fail or not failed
    [tail] = evaluate(ROWS.slice(3))
    assert tail.values.to_pylist() == values[3:]


LAYOUTS: list[Callable[[pa.DataType], pa.DataType]] = [
    pa.list_,
    pa.large_list,
    pa.list_view,
    pa.large_list_view,
    lambda kind: pa.list_(kind, 2),
]
STORED = [
    (pa.uint8(), [7, 255], [7, 255], "int16"),
    (pa.timestamp("ns"), [-1, 1500], [-1, 1], "timestamp[us]"),
    (pa.timestamp("s", "Asia/Tokyo"), [1, 2], [10**6, 2 * 10**6], "timestamp[us, tz=UTC]"),
    (pa.large_string(), ["a", None], ["a", None], "string"),
    (pa.dictionary(pa.int8(), pa.string()), ["a", "b"], ["a", "b"], "string"),
    (pa.decimal128(38, 2), [Decimal("1.50"), None], [Decimal("1.50"), None], "decimal128(38, 2)"),
]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("kind", "given", "wanted", "type_"), STORED, ids=lambda one: str(one)[:20]
)
def test_stored_types(
    layout: Callable[[pa.DataType], pa.DataType],
    kind: pa.DataType,
    given: list[object],
    wanted: list[object],
    type_: str,
) -> None:
    lists = pa.array([given, None], layout(kind))
    batch = pa.table({"s": pa.StructArray.from_arrays([lists], ["f"]), "a": lists})
    for text in ("s['f'][{}]", "a[{}]", "element_at(a, {} + 1)"):
        for place, value in enumerate(wanted):
            bound = bind_text(text.format(place), batch.schema)
            [found] = Evaluator([bound])(batch)
            values = found.values
            if pa.types.is_timestamp(values.type):
                values = values.cast(pa.int64())
            assert (str(bound.type), values.to_pylist()) == (type_, [value, None])
    for text in ("size(s['f'])", "size(a)"):
        [found] = Evaluator([bind_text(text, batch.schema)])(batch)
        assert (str(found.values.type), found.values.to_pylist()) == ("int32", [2, None])


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("l", "cannot be used", "name a field of it, such as .a"),
        ("arr", "cannot be used", "name an element"),
        ("l['n']", "which is not a single value", "name a field of it"),
        ("l['zz']", "l has no field zz", "its fields are a, B c, n"),
        ("m['k']", "m has no fields", "out of the map"),
        ("element_at(m, 'k')", "m is not an array", "out of the map"),
        ("arr[v]", "not a constant integer", "a column of its own"),
        ("arr[1.5]", "not a constant integer", "write a number"),
        ("get(arr)", "takes one index", "write arr"),
        ("upper('a')[0]", "has no parts", "columns have"),
        ("size(v)", "v is not an array", "length"),
        ("cardinality(m)", "m is not an array", "only arrays"),
        ("size(arr, 1)", "takes one array", "write size"),
    ],
)
def test_what_is_refused(text: str, message: str, hint: str) -> None:
    with pytest.raises(BindingError, match=message) as caught:
        bind_text(text, ROWS.schema)
    assert hint in (caught.value.hint or "")


NAMES = pa.table({"k": ["x", "y"], "s": [{"q": 1}, {"q": 2}]})
W = "[RANGE 5 SLIDE 5]"


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        (
            f"SELECT l.`b c`, sum(l.a) AS s FROM t {W} WHERE v < 4 GROUP BY l.`B c`",
            {"b c": [None, "x", "y"], "s": [None, 1, None]},
        ),
        (f"SELECT t.l.n.xs[1] AS x FROM t {W} WHERE v = 1 GROUP BY t.l.n.xs[1]", {"x": [2]}),
        (f"SELECT sum(get(arr, 0)) AS s FROM l {W} WHERE l.l.a = 1", {"s": [1]}),
        (f"SELECT count(*) FILTER (WHERE l.a = 1) AS n FROM t {W} WHERE v < 4", {"n": [1]}),
        (
            (
                f"SELECT n.s.q, max(t.l.a) AS a FROM t {W} JOIN names n ON l.`b c` = n.k"
                " WHERE v < 4 GROUP BY n.s.q HAVING n.s.q < 2"
            ),
            {"q": [1], "a": [1]},
        ),
    ],
)
def test_queries(text: str, columns: dict[str, list[object]]) -> None:
    results = muntin.aggregate(ROWS, text, time="ts", tables={"names": NAMES})
    found = results["q1"].to_pydict()
    assert {name: found[name] for name in columns} == columns
    assert list(found)[2:] == list(columns)
    [query] = queries(text)
    assert queries(query.sql()) == (query,)


def test_elements_that_are_missing_are_counted() -> None:
    text = f"SELECT sum(arr[0]) AS s, count(*) AS n FROM t {W}"
    results = muntin.aggregate(ROWS, text, time="ts")
    assert results["q1"].column("s").to_pylist() == [1, None]
    assert results.errors == {"q1": 1}


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (f"SELECT sum(x.v) AS n FROM t {W}", "no column, stream or table x", "write t.v"),
        (
            f"SELECT sum(t.v) AS n FROM t {W} JOIN names ON l.`b c` = names.k WHERE nams.k = ''",
            "no column, stream or table nams",
            "did you mean names",
        ),
        (f"SELECT sum(l.zz) AS n FROM t {W}", "l has no field zz", "its fields are"),
    ],
)
def test_names_before_a_dot(text: str, message: str, hint: str) -> None:
    with pytest.raises(QueryError, match=message) as caught:
        muntin.aggregate(ROWS, text, time="ts", tables={"names": NAMES})
    assert hint in str(caught.value)
