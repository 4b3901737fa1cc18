"""Spark's types as Arrow types, and which type two of them meet in (ANSI rules)."""

from __future__ import annotations

from functools import reduce

import pyarrow as pa

from muntin.expressions.tree import BindingError

NULL = pa.null()
BOOLEAN = pa.bool_()
TINYINT, SMALLINT, INT, BIGINT = pa.int8(), pa.int16(), pa.int32(), pa.int64()
FLOAT, DOUBLE = pa.float32(), pa.float64()
STRING, BINARY = pa.string(), pa.binary()
DATE = pa.date32()
TIMESTAMP = pa.timestamp("us", "UTC")
TIMESTAMP_NTZ = pa.timestamp("us")

INTEGERS = (TINYINT, SMALLINT, INT, BIGINT)
FLOATS = (FLOAT, DOUBLE)
# These have no parameters, and numbers compare faster than types.
_INTEGER_IDS = frozenset(kind.id for kind in INTEGERS)
_FLOAT_IDS = frozenset(kind.id for kind in FLOATS)
MAX_DIGITS = 38

# Digits that hold every value of an integer type.
INTEGER_DIGITS = {TINYINT: 3, SMALLINT: 5, INT: 10, BIGINT: 20}

NAMES = {
    NULL: "VOID",
    BOOLEAN: "BOOLEAN",
    TINYINT: "TINYINT",
    SMALLINT: "SMALLINT",
    INT: "INT",
    BIGINT: "BIGINT",
    FLOAT: "FLOAT",
    DOUBLE: "DOUBLE",
    STRING: "STRING",
    BINARY: "BINARY",
    DATE: "DATE",
    TIMESTAMP: "TIMESTAMP",
    TIMESTAMP_NTZ: "TIMESTAMP_NTZ",
}

BOUNDS = {
    TINYINT: (-(2**7), 2**7 - 1),
    SMALLINT: (-(2**15), 2**15 - 1),
    INT: (-(2**31), 2**31 - 1),
    BIGINT: (-(2**63), 2**63 - 1),
}


def name_of(kind: pa.DataType) -> str:
    """The SQL name of a type.

    >>> name_of(pa.decimal128(10, 2))
    'DECIMAL(10,2)'
    """
    if is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    return NAMES.get(kind, str(kind))


def is_integer(kind: pa.DataType) -> bool:
    """Whether this is TINYINT, SMALLINT, INT or BIGINT."""
    return kind.id in _INTEGER_IDS


def is_decimal(kind: pa.DataType) -> bool:
    """Whether this is a DECIMAL of any precision."""
    return bool(pa.types.is_decimal(kind))


def is_float(kind: pa.DataType) -> bool:
    """Whether this is FLOAT or DOUBLE."""
    return kind.id in _FLOAT_IDS


def is_number(kind: pa.DataType) -> bool:
    """Whether arithmetic is defined on the type."""
    return is_integer(kind) or is_float(kind) or is_decimal(kind)


def is_time(kind: pa.DataType) -> bool:
    """Whether this is DATE, TIMESTAMP or TIMESTAMP_NTZ."""
    return kind in (DATE, TIMESTAMP, TIMESTAMP_NTZ)


def decimal(precision: int, scale: int) -> pa.DataType:
    """DECIMAL(precision, scale), refused where Spark would start to drop digits."""
    if precision > MAX_DIGITS:
        raise BindingError(
            f"the exact result needs {precision} decimal digits, more than {MAX_DIGITS}",
            hint="CAST an operand to DOUBLE, or to a DECIMAL with fewer digits",
        )
    return pa.decimal128(precision, scale)


def as_decimal(kind: pa.DataType) -> pa.DataType:
    """The DECIMAL that holds every value of an integer or decimal type."""
    return pa.decimal128(INTEGER_DIGITS[kind], 0) if is_integer(kind) else kind


def wider_decimal(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The DECIMAL that holds the values of both, no digit lost."""
    scale = max(left.scale, right.scale)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    return decimal(whole + scale, scale)


def common_number(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Where two numeric types meet.

    An integer meets a FLOAT in DOUBLE, because FLOAT would drop digits; a DECIMAL meets both
    FLOAT and DOUBLE in DOUBLE.

    >>> name_of(common_number(INT, BIGINT)), name_of(common_number(INT, FLOAT))
    ('BIGINT', 'DOUBLE')
    """
    if left == right:
        return left
    if is_float(left) or is_float(right):
        return DOUBLE
    if is_decimal(left) or is_decimal(right):
        return wider_decimal(as_decimal(left), as_decimal(right))
    return max(left, right, key=INTEGERS.index)


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Where two types meet, or an error that says what to write instead.

    >>> name_of(common_type(DATE, TIMESTAMP_NTZ)), name_of(common_type(TIMESTAMP, TIMESTAMP_NTZ))
    ('TIMESTAMP_NTZ', 'TIMESTAMP')
    """
    if right in (left, NULL):
        return left
    if left == NULL:
        return right
    if is_number(left) and is_number(right):
        return common_number(left, right)
    if is_time(left) and is_time(right):
        return TIMESTAMP if TIMESTAMP in (left, right) else TIMESTAMP_NTZ
    raise BindingError(
        f"{name_of(left)} and {name_of(right)} do not mix",
        hint=f"CAST one side, for example CAST(... AS {name_of(left)})",
    )


def common_types(kinds: list[pa.DataType]) -> pa.DataType:
    """Where several types meet."""
    return reduce(common_type, kinds)
