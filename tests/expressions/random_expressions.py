"""Seeded expressions of columns and constants, deep and of all types, and rows they meet."""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa

from expressions import conformance

ROWS = 20
NINES = "9" * 38
# Columns by their type's name in SQL, where a value is one of the edge values or NULL.
COLUMNS = {
    "tinyint": ("tiny", pa.int8(), conformance.TINY),
    "smallint": ("small", pa.int16(), conformance.SMALL),
    "int": ("i", pa.int32(), conformance.INTS),
    "bigint": ("l", pa.int64(), conformance.LONGS),
    "float": ("fl", pa.float32(), conformance.FLOATS),
    "double": ("d", pa.float64(), [*conformance.DOUBLES, 2.675, 2.0**63, 0.1]),
    "decimal(10,2)": ("dec", pa.decimal128(10, 2), conformance.DECIMALS),
    "decimal(38,0)": ("huge", pa.decimal128(38, 0), ["0", "-1", "5", NINES, f"-{NINES}", None]),
    "decimal(38,38)": ("fine", pa.decimal128(38, 38), ["0", "1e-38", f"-0.{NINES}", "0.5", None]),
    "decimal(3,1)": ("short", pa.decimal128(3, 1), ["0", "99.9", "-99.9", "0.5", None]),
    "boolean": ("b", pa.bool_(), conformance.BOOLS),
    "string": ("s", pa.string(), [*conformance.STRINGS, " 12 ", "-0", "1e3", "2020-02-29", "true"]),
    "date": ("dt", pa.date32(), conformance.DATES),
    "timestamp": ("ts", pa.timestamp("us", "UTC"), conformance.TIMES),
    "timestamp_ntz": ("nt", pa.timestamp("us"), conformance.TIMES),
}
CONSTANTS = {
    "tinyint": ["7Y", "-128Y", "cast(127 as tinyint)", "cast(200 as tinyint)"],
    "smallint": ["100S", "-32768S", "cast(40000 as smallint)"],
    "int": ["0", "1", "-7", "2147483647", "-2147483648", "cast('12' as int)", "cast('x' as int)"],
    "bigint": ["3L", "-9223372036854775808L", "9223372036854775807", "cast(5 as bigint)"],
    "float": ["1.5F", "cast('nan' as float)", "cast(16777217 as float)", "cast(0.1 as float)"],
    "double": ["0.0D", "-0.0D", "1e308", "cast('1d' as double)", "cast('-inf' as double)", "0.1D"],
    "decimal(10,2)": ["cast(1.5 as decimal(10,2))", "cast(123456789.5 as decimal(10,2))", "-1.25"],
    "decimal(38,0)": [NINES, "cast(1 as decimal(38,0))", "1BD", "cast(1.5 as decimal(38,0))"],
    "decimal(38,38)": [f"0.{NINES}", "cast(1.5 as decimal(38,38))", "cast(0 as decimal(38,38))"],
    "decimal(3,1)": ["1.5BD", "cast(12345.67 as decimal(3,1))", "cast('99.94' as decimal(3,1))"],
    "boolean": ["true", "false", "cast('yes' as boolean)"],
    "string": ["''", "'abc'", "'été'", "'12'", "cast(1.50 as string)"],
    "date": ["DATE '2020-02-29'", "DATE '1969-12-31'", "cast('2020-2-9' as date)"],
    "timestamp": ["TIMESTAMP '2020-02-29 12:34:56.789'", "TIMESTAMP '1969-12-31 23:59:59'"],
    "timestamp_ntz": ["TIMESTAMP_NTZ '2020-02-29 12:34:56.789'", "TIMESTAMP_NTZ '1970-01-01'"],
}
INTEGERS = ("tinyint", "smallint", "int", "bigint")
DECIMALS = ("decimal(10,2)", "decimal(38,0)", "decimal(38,38)", "decimal(3,1)")
NUMBERS = (*INTEGERS, "float", "double", *DECIMALS)
TIMES = ("date", "timestamp", "timestamp_ntz")
# Which types a cast converts from; a failing value is what it is about.
SOURCES = {
    **dict.fromkeys(INTEGERS, (*NUMBERS, "boolean", "string", "timestamp")),
    **dict.fromkeys(("float", "double"), (*NUMBERS, "boolean", "string", "timestamp")),
    **dict.fromkeys(DECIMALS, (*INTEGERS, *DECIMALS, "boolean")),
    "boolean": (*NUMBERS, "string"),
    "string": (*INTEGERS, *DECIMALS, "boolean", *TIMES),
    "date": ("string", "timestamp", "timestamp_ntz"),
    "timestamp": ("date", "timestamp_ntz", "int", "bigint"),
    "timestamp_ntz": ("date", "timestamp"),
}


def table(seed: int) -> pa.Table:
    """Rows of edge values, drawn anew for every column."""
    draw = random.Random(seed)
    columns = {}
    for name, kind, values in COLUMNS.values():
        drawn = [draw.choice(values) for _ in range(ROWS)]
        if pa.types.is_decimal(kind):
            drawn = [value and Decimal(value) for value in drawn]
        columns[name] = pa.array(drawn, kind)
    return pa.table(columns)


def expressions(seed: int, count: int, depth: int = 3) -> list[str]:
    """Different expressions, none of them a mere column."""
    writer = _Writer(random.Random(seed))
    found: dict[str, None] = {}
    while len(found) < count:
        kind = writer.draw.choice(list(COLUMNS))
        found[writer.call(kind, depth)] = None
    return list(found)


class _Writer:
    """Writes expressions of a type that is asked for."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw

    def value(self, kind: str, depth: int) -> str:
        """A column, a constant or a call."""
        chance = self.draw.random()
        if depth > 0 and chance < 0.5:
            return self.call(kind, depth)
        if chance < 0.7:
            return self.draw.choice(CONSTANTS[kind])
        return COLUMNS[kind][0] if chance < 0.96 else f"cast(null as {kind})"

    def call(self, kind: str, depth: int) -> str:
        """A function, operator or cast with a result of this type, or near it."""
        ways: list[Callable[[str, int], str]] = [self._cast, self._cast, self._choice]
        if kind in NUMBERS:
            ways += [self._arithmetic, self._arithmetic, self._number]
        if kind == "boolean":
            ways += [self._comparison, self._comparison, self._logic]
        if kind == "string":
            ways += [self._text]
        if kind == "int":
            ways += [self._part]
        if kind == "timestamp":
            ways += [lambda kind, depth: f"date_trunc('hour', {self.value(kind, depth)})"]
        return self.draw.choice(ways)(kind, depth - 1)

    def _cast(self, kind: str, depth: int) -> str:
        source = self.draw.choice(SOURCES[kind])
        name = self.draw.choice(["cast", "cast", "try_cast"])
        if (source, kind) == ("string", "date"):
            depth = 0  # Spark computes constants there before all else, and fails then.
        return f"{name}({self.value(source, depth)} as {kind})"

    def _choice(self, kind: str, depth: int) -> str:
        first, second = self.value(kind, depth), self.value(kind, depth)
        test = self.value("boolean", depth)
        forms = [
            f"case when {test} then {first} else {second} end",
            f"coalesce({first}, {second})",
            f"if({test}, {first}, {second})",
            f"nvl2({first}, {second}, {first})",
        ]
        if kind != "boolean":
            forms.append(f"{self.draw.choice(['greatest', 'least'])}({first}, {second})")
        return self.draw.choice(forms)

    def _arithmetic(self, kind: str, depth: int) -> str:
        operators = {"float": "+-*/%", "double": "+-*/%"}.get(kind, "+-*%")
        if kind in DECIMALS:
            operators += "/"
        operator = self.draw.choice(operators)
        first = self.value(kind, depth)
        second = self.value(self.draw.choice([kind, kind, *INTEGERS]), depth)
        return f"({first} {operator} {second})"

    def _number(self, kind: str, depth: int) -> str:
        names = ["round", "floor", "ceil", "nanvl", "div", "pmod"]
        # Spark rounds what it negates to 34 digits.
        names += [] if "(38" in kind else ["abs", "-"]
        name = self.draw.choice(names)
        value = self.value(kind, depth)
        if name == "-":
            return f"(- {value})"
        if name == "nanvl":
            return f"nanvl({self.value('double', depth)}, {self.value('double', depth)})"
        if name == "div":
            return f"({self.value('bigint', depth)} div {self.value('int', depth)})"
        if name == "pmod":
            return f"pmod({self.value('int', depth)}, {self.value('int', depth)})"
        return f"{name}({value})"

    def _comparison(self, kind: str, depth: int) -> str:
        side = self.draw.choice([name for name in COLUMNS if name != "boolean"])
        first, second = self.value(side, depth), self.value(side, depth)
        forms = [
            f"({first} {self.draw.choice(['=', '<>', '<', '<=', '>', '>=', '<=>'])} {second})",
            f"({first} in ({second}, {self.value(side, depth)}))",
            f"({first} between {second} and {self.value(side, depth)})",
            f"({first} is null)",
        ]
        return self.draw.choice(forms)

    def _logic(self, kind: str, depth: int) -> str:
        first, second = self.value(kind, depth), self.value(kind, depth)
        forms = [f"({first} and {second})", f"({first} or {second})", f"(not {first})"]
        return self.draw.choice(forms)

    def _text(self, kind: str, depth: int) -> str:
        value, other = self.value(kind, depth), self.value(kind, depth)
        number = self.value("int", 0)
        forms = [f"upper({value})", f"concat({value}, {other})", f"reverse({value})"]
        forms += [f"substring({value}, {number}, 2)", f"left({value}, {number})"]
        return self.draw.choice([*forms, f"replace({value}, 'a', 'xy')", f"lpad({value}, 4, '*')"])

    def _part(self, kind: str, depth: int) -> str:
        text = f"length({self.value('string', depth)})"
        name = self.draw.choice(["year", "month", "dayofweek", "hour", "minute"])
        time = self.value("timestamp" if name in ("hour", "minute") else "date", depth)
        place = f"instr({self.value('string', depth)}, {self.value('string', depth)})"
        return self.draw.choice([text, place, f"{name}({time})"])
