"""The conformance table: expressions, the edge values they meet, and how answers compare."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

HERE = Path(__file__).parent
GOLDEN = HERE.parent / "golden" / "spark_expressions.json"

NAN, INF = math.nan, math.inf
SECOND = 1_000_000
DAY = 86_400 * SECOND
LEAP_DAY = 18_321  # 2020-02-29

TINY = [0, 1, -1, 7, -7, 127, -128, None]
SMALL = [0, 1, -1, 100, -100, 32767, -32768, None]
INTS = [0, 1, -1, 2, -7, 2**31 - 1, -(2**31), None]
LONGS = [0, 1, -7, 42, 2**53 + 1, 2**63 - 1, -(2**63), None]
FLOATS = [0.0, -0.0, 1.5, -2.5, 3e38, NAN, INF, None]
DOUBLES = [0.0, -0.0, 1.5, -2.5, 1e308, NAN, -INF, None]
DECIMALS = ["0.00", "0.01", "1.50", "-1.25", "99999999.99", "-99999999.99", "2.00", None]
WIDE = ["0", "7", "-7", "12345678901234567890", "-99999999999999999999", "1", "2", None]
STRINGS = ["", "abc", "a", "Été", "aXc ", "b", "😀é", None]
DATES = [0, -1, LEAP_DAY, LEAP_DAY + 1, -719_162, 2_932_896, 365, None]
TIMES = [
    0,
    -1,
    LEAP_DAY * DAY + DAY // 2,
    LEAP_DAY * DAY,
    -719_162 * DAY,
    2_932_896 * DAY + DAY - 1,
    123_456_789_012_345,
    None,
]
BYTES = [b"", b"\x00", b"\x01", b"\x01\x00", b"\xff", b"abc", b"a", None]
BOOLS = [True, False, None]

MORE_DOUBLES = [0.5, -0.5, 2.5, 0.49999999999999994, 2.675, 1.005, -1.005, 1e-320, 0.1, 1234.5675]
MORE_DOUBLES += [2.0**31, -(2.0**31) - 0.5, 2.0**63, -(2.0**63), 2.0**64, INF, 127.9, -128.9]
MORE_DOUBLES += [9007199254740993.0, 123456789012.345, 1e15 + 0.3, 4503599627370497.5, 1e22]
MORE_DOUBLES += [0.285, 5e-324, 1.7976931348623157e308, 99.995, 0.045, -0.0005]
MORE_TIMES = [
    1,
    SECOND,
    -SECOND,
    DAY - 1,
    -DAY,
    10_957 * DAY,
    -141_428 * DAY - 1,
    10**18,
    -(10**18),
]
MORE_TIMES += [1_600_000_000_123_456, 1_600_000_000_500_000, 18_627 * DAY]
MORE_STRINGS = ["ABC", "  a b  ", "cabac", "50%", "a_b", "line\nbreak", "a\n", "12", "e\u0301"]
MORE_STRINGS += ["STRASSE ß", "ΑΣ", "\ta\t", "a.c", "İ", "ab" * 20, "\u00a0x\u00a0"]
NUMBERS = ["0", "1", "-1", "+5", " 12 ", "1.5", "-1.5", "1e3", "", " ", "abc", "2147483648", "128"]
NUMBERS += ["9223372036854775807", "9223372036854775808", "NaN", "Infinity", "-inf", "inf", ".5"]
NUMBERS += ["5.", "1e400", "true", "F", "yes", "n", "T", "0x10", "1_000", "--1", "1d", "1.0f", "٣"]
NUMBERS += ["\t7\n", "1 2", "00012", "-0", "1e-400", "+inf", "infinit", "-128", "on", None]
DAYS = ["2020-02-29", "2019-02-29", "2020-2-9", "2020-02", "2020", " 2020-01-01 ", "abc", ""]
DAYS += ["2020-01-01 10:00:00", "2020-01-01T10", "2020-13-01", "20200101", "10000-01-01"]
DAYS += ["0001-01-01", "2020-01-01x", "2020-1", "202", "2020-01-32", "2020-00-10", None]

ULPS = {"exp": 2, "ln": 2, "log": 4, "log2": 4, "log10": 2, "power": 2, "pow": 2}

PAIRS = {
    "tiny": (pa.int8(), TINY),
    "small": (pa.int16(), SMALL),
    "i": (pa.int32(), INTS),
    "l": (pa.int64(), LONGS),
    "fl": (pa.float32(), FLOATS),
    "d": (pa.float64(), DOUBLES),
    "dec": (pa.decimal128(10, 2), [d and Decimal(d) for d in DECIMALS]),
    "wide": (pa.decimal128(20, 0), [w and Decimal(w) for w in WIDE]),
    "b": (pa.bool_(), BOOLS),
    "s": (pa.string(), STRINGS),
    "dt": (pa.date32(), DATES),
    "ts": (pa.timestamp("us", "UTC"), TIMES),
    "nt": (pa.timestamp("us"), TIMES),
    "bin": (pa.binary(), BYTES),
}
MORE = {
    "i": [5, 15, 25, -5, -15, 128, 32768, 2**31 - 5],
    "l": [50, 150, -50, 2**31, -(2**31) - 1, 2**62, 10**13, -(10**13), 253402300800, 2**53],
    "tiny": [5, 15, -5, -15, 125],
    "fl": [0.5, 2.5, -0.5, 16777217.0, 1e-45, 2147483648.0, 9.3e18, 300.7],
    "d": MORE_DOUBLES,
    "dec": [Decimal(d) for d in ("0.05", "0.15", "-0.05", "0.50", "-0.50", "2.50", "127.99")],
    "s": MORE_STRINGS,
    "dt": [1, 59, 60, 10_957, -25_567, -141_428, 100_000_000, -100_000_000, 18_627, 18_631],
    "ts": MORE_TIMES,
}
SINGLES = {
    "num": (pa.string(), NUMBERS),
    "day": (pa.string(), DAYS),
}


def pairs() -> pa.Table:
    """Columns x and x2 of every type, in which every edge value meets every other."""
    size = max(len(values) for _, values in PAIRS.values())
    columns = {}
    for name, (kind, values) in PAIRS.items():
        first = [values[k // size % len(values)] for k in range(size * size)]
        second = [values[k % size % len(values)] for k in range(size * size)]
        columns |= {name: pa.array(first, kind), f"{name}2": pa.array(second, kind)}
    return pa.table(columns)


def singles() -> pa.Table:
    """One column of every type with more edge values, padded with NULL."""
    lists = {name: (kind, values + MORE.get(name, [])) for name, (kind, values) in PAIRS.items()}
    lists |= SINGLES
    size = max(len(values) for _, values in lists.values())
    return pa.table(
        {
            name: pa.array(values + [None] * (size - len(values)), kind)
            for name, (kind, values) in lists.items()
        }
    )


def cases() -> dict[str, str]:
    """Every expression with its family."""
    family, found = "", {}
    for line in (HERE / "conformance.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            family = line.removeprefix("## ")
        elif line.strip() and not line.startswith("#"):
            found[line] = family
    return found


def uses_pairs(expression: str) -> bool:
    """Whether an expression has a second operand."""
    names = expression.replace("(", " ").replace(")", " ").replace(",", " ").split()
    return any(name.removesuffix("2") in PAIRS and name.endswith("2") for name in names)


@dataclass(frozen=True)
class Answer:
    """The values of one expression, in plain JSON types, and the rows that failed."""

    type: str
    values: list[object]
    failed: list[int]


def plain(values: pa.Array) -> list[object]:
    """Values as JSON knows them, exactly."""
    kind = values.type
    if pa.types.is_timestamp(kind):
        return list(values.cast(pa.int64()).to_pylist())
    if pa.types.is_date32(kind):
        return list(values.cast(pa.int32()).to_pylist())
    if pa.types.is_decimal(kind):
        return [None if v is None else str(v) for v in values.to_pylist()]
    if pa.types.is_binary(kind):
        return [None if v is None else v.hex() for v in values.to_pylist()]
    return list(values.to_pylist())


def load_golden() -> dict[str, Answer]:
    """Spark's answers, as they were stored."""
    stored = json.loads(GOLDEN.read_text(encoding="utf-8"))
    return {text: Answer(**answer) for text, answer in stored.items()}


def save_golden(answers: dict[str, Answer]) -> None:
    """Store Spark's answers, one expression a line."""
    lines = [f"{json.dumps(text)}: {json.dumps(vars(a))}" for text, a in answers.items()]
    GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def ulps(text: str) -> int:
    """How many units in the last place an answer may be off: math libraries differ."""
    return ULPS.get(text.split("(", maxsplit=1)[0], 0)


def same(left: object, right: object, *, ulps: int = 0) -> bool:
    """Equal, with NaN equal to itself and signed zeros told apart; floats up to `ulps` apart."""
    if isinstance(left, float) and isinstance(right, float):
        if math.isnan(left) or math.isnan(right):
            return math.isnan(left) and math.isnan(right)
        if left == right:
            return math.copysign(1, left) == math.copysign(1, right)
        return abs(left - right) <= ulps * max(math.ulp(left), math.ulp(right))
    return type(left) is type(right) and left == right


def differences(ours: Answer, spark: Answer, *, ulps: int = 0) -> list[str]:
    """What differs, one line a row."""
    if ours.type != spark.type:
        return [f"type {ours.type}, Spark has {spark.type}"]
    found = []
    for row, (mine, theirs) in enumerate(zip(ours.values, spark.values, strict=True)):
        failed, fails = row in ours.failed, row in spark.failed
        if failed != fails or not (failed or same(mine, theirs, ulps=ulps)):
            shown = "error" if failed else repr(mine)
            found.append(f"row {row}: {shown}, Spark has {'error' if fails else repr(theirs)}")
    return found
