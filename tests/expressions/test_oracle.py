"""Random numbers against exact arithmetic in Python."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muntin.expressions import Evaluator, bind_text

LOW, HIGH = -(2**63), 2**63 - 1
LONGS = st.one_of(st.integers(LOW, HIGH), st.integers(-20, 20), st.sampled_from([LOW, HIGH]))
INTS = st.one_of(st.integers(-(2**31), 2**31 - 1), st.integers(-20, 20))
DOUBLES = st.floats(allow_nan=False, allow_infinity=False)


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


OPERATORS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "div": truncated,
    "%": lambda a, b: a - truncated(a, b) * b,
}


def exact(name: str, a: int, b: int, bits: int) -> int | None:
    """The exact result, None where it fails."""
    if b == 0 and name in ("div", "%"):
        return None
    result = OPERATORS[name](a, b)
    return result if -(2 ** (bits - 1)) <= result < 2 ** (bits - 1) else None


def evaluate(text: str, **columns: pa.Array) -> tuple[list[object], list[bool]]:
    batch = pa.table(columns)
    [found] = Evaluator([bind_text(text, batch.schema)])(batch)
    errors = [False] * batch.num_rows if found.errors is None else found.errors.to_pylist()
    return found.values.to_pylist(), errors


@pytest.mark.parametrize("name", OPERATORS)
@given(pairs=st.lists(st.tuples(LONGS, LONGS), min_size=1, max_size=20))
@settings(max_examples=60, deadline=None)
def test_bigint(name: str, pairs: list[tuple[int, int]]) -> None:
    a, b = (pa.array(column, pa.int64()) for column in zip(*pairs, strict=True))
    expected = [exact(name, x, y, 64) for x, y in pairs]
    assert evaluate(f"a {name} b", a=a, b=b) == (expected, [e is None for e in expected])


@pytest.mark.parametrize("name", ["+", "-", "*", "%"])
@given(pairs=st.lists(st.tuples(INTS, INTS), min_size=1, max_size=20))
@settings(max_examples=40, deadline=None)
def test_int(name: str, pairs: list[tuple[int, int]]) -> None:
    a, b = (pa.array(column, pa.int32()) for column in zip(*pairs, strict=True))
    expected = [exact(name, x, y, 32) for x, y in pairs]
    assert evaluate(f"a {name} b", a=a, b=b) == (expected, [e is None for e in expected])


@pytest.mark.parametrize("name", OPERATORS)
@given(numbers=st.lists(LONGS, min_size=1, max_size=20), constant=LONGS)
@settings(max_examples=60, deadline=None)
def test_constant_operand(name: str, numbers: list[int], constant: int) -> None:
    """Kernels for a constant operand are others than those for two columns."""
    column = pa.array(numbers, pa.int64())
    expected = [exact(name, x, constant, 64) for x in numbers]
    text = f"a {name} cast({constant} as bigint)"
    assert evaluate(text, a=column) == (expected, [e is None for e in expected])


@given(numbers=st.lists(DOUBLES, min_size=1, max_size=20), constant=DOUBLES)
@settings(max_examples=100, deadline=None)
def test_division_of_doubles_is_correctly_rounded(numbers: list[float], constant: float) -> None:
    column = pa.array(numbers, pa.float64())
    values, errors = evaluate(f"a / {constant!r}D", a=column)
    for number, value, error in zip(numbers, values, errors, strict=True):
        assert error == (constant == 0)
        if not error:
            assert value == number / constant


@given(
    numbers=st.lists(st.decimals(-(10**7), 10**7, places=3), min_size=1, max_size=20),
    divisor=st.decimals("0.01", 1000, places=2),
)
@settings(max_examples=60, deadline=None)
def test_decimal_division_rounds_half_up(numbers: list[Decimal], divisor: Decimal) -> None:
    column = pa.array(numbers, pa.decimal128(11, 3))
    values, _ = evaluate(
        "a / b", a=column, b=pa.array([divisor] * len(numbers), pa.decimal128(6, 2))
    )
    for number, value in zip(numbers, values, strict=True):
        assert isinstance(value, Decimal)
        unit = Decimal(1).scaleb(value.as_tuple().exponent)
        assert value == (number / divisor).quantize(unit, ROUND_HALF_UP)


@given(
    numbers=st.lists(
        st.one_of(DOUBLES, st.floats(-1e6, 1e6), st.decimals(-1000, 1000, places=4).map(float)),
        min_size=1,
        max_size=30,
    ),
    digits=st.integers(0, 15),
)
@settings(max_examples=200, deadline=None)
def test_round_is_of_the_printed_number(numbers: list[float], digits: int) -> None:
    values, _ = evaluate(f"round(a, {digits})", a=pa.array(numbers, pa.float64()))
    unit = Decimal(1).scaleb(-digits)
    for number, value in zip(numbers, values, strict=True):
        printed = Decimal(repr(number))
        if abs(printed) < 10**12:
            expected = float(printed.quantize(unit, ROUND_HALF_UP))
        else:
            expected = number if digits >= 4 else float(round_large(printed, digits))
        assert value == expected
        assert isinstance(value, float)
        assert not math.isnan(value)


def round_large(printed: Decimal, digits: int) -> Decimal:
    """Rounded without the precision limit of the decimal context."""
    scaled = int(abs(printed) * 10 ** (digits + 40))
    unit = 10**40
    whole = (scaled + unit // 2) // unit
    return Decimal(whole).scaleb(-digits).copy_sign(printed)
