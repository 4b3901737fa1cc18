from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from muntin.expressions import bind_text
from muntin.predicates import Analysis, Analyzer, analyze, conjunction

SCHEMA = pa.schema(
    [
        ("vol", pa.int64()),
        ("price", pa.float64()),
        ("cp", pa.float64()),
        ("rate", pa.float32()),
        ("amount", pa.decimal128(10, 2)),
        ("symbol", pa.string()),
        ("hot", pa.bool_()),
        ("ts", pa.timestamp("us", "Europe/Paris")),
    ]
)


def analysis(*texts: str | None) -> Analysis:
    return analyze([None if text is None else bind_text(text, SCHEMA) for text in texts])


EQUAL = [
    ["vol > 10", "10 < VOL", "NOT vol <= 10", "vol >= 11", "vol > 10.5", "vol > 1.05e1"],
    [
        "vol BETWEEN 1 AND 5",
        "vol >= 1 AND vol <= 5",
        "vol <= 5 AND vol >= 1",
        "NOT (vol<1 OR vol>5)",
    ],
    ["vol IN (3, 1, 2)", "vol IN (1, 2, 2, 3)", "vol BETWEEN 1 AND 3", "vol=1 OR vol=2 OR vol=3"],
    ["vol IN (1, NULL)", "vol = 1", "vol <=> 1", "vol IN (1, 1 + 0)"],
    ["vol <> 5", "NOT vol = 5", "vol NOT IN (5)", "vol < 5 OR vol > 5"],
    ["vol IS NOT NULL", "NOT vol IS NULL", "vol > 5 OR vol <= 5", "vol <> 5 OR vol = 5"],
    ["vol IS NULL", "NOT vol IS NOT NULL", "(vol > 5) IS NULL", "vol <=> NULL"],
    [
        "hot",
        "hot = TRUE",
        "hot IS TRUE",
        "NOT hot = FALSE",
        "NOT NOT hot",
        "hot AND hot",
        "hot > FALSE",
    ],
    ["NOT hot", "hot = FALSE", "hot IS FALSE", "hot <> TRUE", "hot < TRUE"],
    [
        "hot AND vol > 10",
        "vol > 10 AND hot",
        "NOT (NOT hot OR vol <= 10)",
        "hot AND hot AND 10 < vol",
    ],
    ["hot OR vol > 10", "vol > 10 OR hot", "NOT (NOT hot AND NOT vol > 10)"],
    ["price > cp", "cp < price", "NOT price <= cp", "NOT cp >= price"],
    ["price = cp", "cp = price", "NOT cp <> price"],
    ["price > 0", "price > -0.0", "price > 0e0"],
    ["isnan(price)", "price = CAST('NaN' AS DOUBLE)", "price > CAST('Infinity' AS DOUBLE)"],
    ["rate > 1.5", "CAST(rate AS DOUBLE) > 1.5"],
    ["amount > 1", "amount > 1.00", "amount >= 1.01", "amount > 1.005", "amount > 1.001"],
    ["symbol LIKE 'AB%'", "startswith(symbol, 'AB')", "symbol >= 'AB' AND symbol < 'AC'"],
    ["symbol LIKE 'AB'", "symbol = 'AB'", "symbol IN ('AB')"],
    ["ts >= '2024-01-01'", "ts >= TIMESTAMP '2024-01-01 00:00:00'"],
    ["vol > 2 * 50", "vol > 100"],
    ["(hot AND vol > 1) OR (hot AND vol > 5)", "hot AND vol > 1"],
    ["(hot AND vol > 1) OR (hot AND price > 5)", "hot AND (price > 5 OR vol > 1)"],
    ["CASE WHEN hot THEN vol > 1 ELSE FALSE END", "hot AND vol > 1"],
    ["coalesce(hot, FALSE)", "hot"],
]


@pytest.mark.parametrize("texts", EQUAL, ids=[texts[0] for texts in EQUAL])
def test_equal_predicates_written_differently_are_one(texts: list[str]) -> None:
    assert analysis(*texts).index == (0,) * len(texts)


DIFFERENT = [
    ("price > 0", "price >= 0"),
    ("price > 1", "price > 1.0000000000000002"),
    ("vol = vol", "TRUE"),
    ("vol IS NOT NULL", "TRUE"),
    ("hot IS NOT TRUE", "NOT hot"),
    ("vol NOT IN (1, NULL)", "vol <> 1"),
    ("symbol = 'a'", "symbol = 'A'"),
    # Which operands are evaluated, and so what fails, depends on their order.
    ("hot AND price / cp > 1", "price / cp > 1 AND hot"),
]


@pytest.mark.parametrize("pair", DIFFERENT, ids=[pair[0] for pair in DIFFERENT])
def test_different_predicates_stay_different(pair: tuple[str, str]) -> None:
    assert analysis(*pair).index == (0, 1)


TRUE = [
    "TRUE",
    "1 = 1",
    "vol IS NULL OR vol IS NOT NULL",
    "(vol > 1) IS NULL OR vol > 1 OR vol <= 1",
]
TRUE += ["hot OR NOT hot OR hot IS NULL", "TRUE OR vol > 1", "NULL IS NULL", "vol > 1 OR TRUE"]
TRUE += ["coalesce(vol >= -9223372036854775808, TRUE)", "(vol > 99999999999999999999) IS NOT TRUE"]
FALSE = [
    "FALSE",
    "NULL",
    "1 > 2",
    "vol > 5 AND vol < 3",
    "vol = NULL",
    "vol IN (NULL)",
    "hot AND NOT hot",
]
FALSE += ["vol > 9223372036854775807", "vol = 1.5", "amount = 1.005", "vol IS NULL AND vol > 1"]
FALSE += [
    "vol > 5 AND hot AND vol = 2",
    "vol <> NULL",
    "NOT NULL",
    "symbol < ''",
    "vol NOT IN (NULL)",
]


@pytest.mark.parametrize("text", TRUE)
def test_always_true(text: str) -> None:
    found = analysis(text, None)
    assert [predicate.constant for predicate in found.predicates] == [True]
    [shape] = found.shapes
    assert (shape.places, shape.size, found.dimensions) == ((), 1, ())
    assert shape.truth([]).tolist() == [[True]]
    assert shape.cells([], 3).ids.tolist() == shape.keys([], 3).tolist() == [0, 0, 0]


@pytest.mark.parametrize("text", FALSE)
def test_never_true(text: str) -> None:
    found = analysis(text)
    assert [predicate.constant for predicate in found.predicates] == [False]
    assert (found.shapes, found.shape_of, found.dimensions) == ((), (None,), ())


def test_a_predicate_that_only_fails_is_no_constant() -> None:
    found = analysis("price / cp > 1 AND FALSE")
    assert found.predicates[0].constant is None
    [shape] = found.shapes
    [ratio] = shape.dimensions
    assert ratio.cuts == ()
    columns = [np.array([0, ratio.null, ratio.failed])]
    assert shape.truth(columns).tolist() == [[False], [False], [False]]
    assert shape.failures(columns).tolist() == [[False], [False], [True]]


def test_only_cuts_that_matter_are_made() -> None:
    found = analysis(
        "vol > 10", "vol > 20", "vol > 20 OR vol > 30", "vol > 20 AND vol < 25 AND vol > 22"
    )
    [vol] = found.dimensions
    assert vol.cuts == (11, 21, 23, 25)
    assert (vol.values, vol.size) == (5, 6)


def test_one_dimension_for_all_types_of_constants() -> None:
    found = analysis("amount > 1", "amount > 2.5", "amount > 1.555", "rate > 1.5", "rate = 2")
    assert [dimension.bound.key for dimension in found.dimensions] == ["amount", "rate"]


def test_dimensions_have_keys_of_their_own() -> None:
    found = analysis("amount > 1e0", "amount > 1", "ts > '2024-01-01'")
    keys = [dimension.bound.key for dimension in found.dimensions]
    assert keys == ["CAST(amount AS DOUBLE)", "CAST(ts AS TIMESTAMP)", "amount"]


def test_too_large_a_table_is_one_bit() -> None:
    columns = pa.schema([(f"c{i}", pa.int64()) for i in range(20)])
    text = " OR ".join(f"c{i} > {i}" for i in range(20))
    found = analyze([bind_text(text, columns), bind_text(text.replace("OR", "AND"), columns)])
    assert [len(shape.dimensions) for shape in found.shapes] == [1, 20]
    assert found.shapes[0].dimensions[0].bound.type == pa.bool_()
    assert found.shapes[1].box(0) is not None


def test_filter_is_tested_behind_where() -> None:
    where, condition = bind_text("hot", SCHEMA), bind_text("price / cp > 1", SCHEMA)
    both = conjunction(where, condition)
    assert both is not None
    assert conjunction(None, where, None) is where
    assert conjunction() is None
    # NULL in WHERE ends the evaluation here; in AND it does not.
    assert analyze([both, bind_text("hot AND price / cp > 1", SCHEMA)]).index == (0, 1)


def test_an_analyzer_answers_as_if_each_set_were_the_first() -> None:
    analyzer = Analyzer()
    sets = [["vol > 3", "hot"], ["vol > 3", "price > 2 AND hot", "vol > 9"], ["hot", None]]
    for texts in sets:
        bounds = [None if text is None else bind_text(text, SCHEMA) for text in texts]
        assert analyzer(bounds) == analyze(bounds)


def test_order_and_numbers_do_not_depend_on_chance() -> None:
    texts = ["hot", "vol > 3", "price < 2 AND hot", "symbol = 'x'", "vol > 9", None]
    first, again = analysis(*texts), analysis(*texts)
    assert first == again
    assert [shape.places for shape in first.shapes] == [(), (0,), (2,), (3,), (0, 1)]
    assert [predicate.text for predicate in first.predicates][-1] == "TRUE"
