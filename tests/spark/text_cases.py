"""Damaged and unusual text files, made from seeds; a script that reads them without Spark.

An input that ends the process is named in a file: ``python text_cases.py json 0 500 folder``.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from muntin.errors import DataError
from muntin.pipelines.sources import infer
from muntin.spark.files.columns import UnlikeSparkError
from muntin.spark.files.pieces import Piece
from muntin.spark.files.text import TextFormat

SCHEMA = pa.schema(
    {
        "a": pa.int64(),
        "d": pa.float64(),
        "b": pa.bool_(),
        "s": pa.string(),
        "t": pa.timestamp("us", "UTC"),
        "i": pa.int32(),
        "n": pa.decimal128(10, 2),
        "y": pa.date32(),
    }
)
# JSON at which Arrow's reader ends the process.
ENDS_ARROW = [b"null", b"\n null\n", b'null\n{"a":1}', b"null{}", b"nullx"]
_SHARED = [b"null", b"1", b"-0", b"1.5", b"1e5", b"1e400", b"9" * 40, b"true", b"FALSE", b'""']
_SHARED += [b'"x"', b"NaN", b"Inf", b"-Infinity", b"nan", b"01", b"+1", b".5", b"1.", b"- 1"]
_SHARED += [b'"2013-10-07T10:00:00Z"', b'"2013-10-07"', b'"\xff"', b'"\xed\xa0\x80"', b"'q'"]
_SHARED += [b'"open', b'"' + b"x" * 3000 + b'"', b"\0", b"1 2", b" ", b"", b'"a b"', b'"\xc3\xa9"']
_JSON = [b'"\\ud800"', b'"\\udc00"', b'"\\u0000"', b'"a\\n"', b"[]", b"{}", b"[[1]]", b"[null]"]
_JSON += [b'{"a":{"a":1}}', b'{"x":null}', b"nul", b"[" * 500 + b"]" * 500, b'"Inf"', b'"5"']
_JSON += [b'{"k":' * 200 + b"1" + b"}" * 200, b'"2013-10-07 10:00:00"', b"1.25", b'"1.25"']
_CSV = [b'x"y', b'""""', b"\\", b"a\tb", b"#x", b"2013-10-07", b"2013-10-07 10:00:00", b"x"]
_CSV += [b"true", b"1.25", b"-7", b'"a,b"', b" 1", b"2013-10-07T10:00:00+01:00"]
_KEYS = [b"a", b"d", b"b", b"s", b"t", b"i", b"n", b"y", b"zz", b"", b"A", b"\\u0061", b"\xff"]
_LINES = [b"null", b" null", b"[]", b"1", b'"x"', b"true", b"", b" ", b"\t", b"{}", b"{} ", b" {}"]
_LINES += [b"{}{}", b"{},", b"}", b"{", b"\xef\xbb\xbf{}", b"[{}]", b"//c", b"{}null", b"null{}"]
_LINES += [b"\0", b"\xff\xfe", b"nullnull", b"{} null", b"NaN", b"\x0c", b"\xc2\xa0", b"nul"]
_ODD_BYTES = b'{}[]",:\\\n\r 0n'


def text_case(kind: str, seed: int) -> bytes:
    """The content of a file, most of it as it should be."""
    chance = random.Random(f"{kind} {seed}")
    made: dict[str, tuple[Callable[[random.Random], bytes], ...]] = {
        "json": (_odd_line, _odd_object, _good_object, _good_object),
        "csv": (_odd_line, _odd_row, _good_row, _good_row),
    }
    lines = [chance.choice(made[kind])(chance) for _ in range(chance.choice([1, 1, 2, 3, 5]))]
    between = chance.choice([b"\n", b"\n", b"\n", b"\r\n", b"\n\n\n"])
    return _mutated(chance, between.join(lines) + chance.choice([b"\n", b""]))


def text_rows(kind: str, path: Path, schema: pa.Schema = SCHEMA) -> list[pa.Table] | None:
    """What a worker reads; None where it leaves the file to Spark's reader."""
    size = path.stat().st_size
    reader = TextFormat(kind, tuple(SCHEMA.names), header=False, separator=",")
    try:
        tables = list(reader.read(Piece(str(path), 0, size, size), schema))
    except UnlikeSparkError:
        return None
    for table in tables:
        table.validate(full=True)
    return tables


def _odd_line(chance: random.Random) -> bytes:
    return chance.choice(_LINES)


def _odd_object(chance: random.Random) -> bytes:
    pairs = [
        b'"' + chance.choice(_KEYS) + b'":' + chance.choice(_SHARED + _JSON)
        for _ in range(chance.randrange(6))
    ]
    return b"{" + b",".join(pairs) + b"}"


def _good_object(chance: random.Random) -> bytes:
    a, d = chance.randrange(99), chance.randrange(99)
    return b'{"a":%d,"d":%d.5,"b":true,"s":"v","t":"2013-10-07 10:00:00"}' % (a, d)


def _odd_row(chance: random.Random) -> bytes:
    count = chance.choice([len(SCHEMA), len(SCHEMA), len(SCHEMA) - 1, 1, 9])
    return b",".join(chance.choice(_SHARED + _CSV) for _ in range(count))


def _good_row(chance: random.Random) -> bytes:
    a, d = chance.randrange(99), chance.randrange(99)
    return b"%d,%d.5,true,v,2013-10-07 10:00:00,%d,1.25,2013-10-07" % (a, d, a)


def _mutated(chance: random.Random, data: bytes) -> bytes:
    made = bytearray(data)
    for _ in range(chance.choice([0, 0, 0, 1, 1, 2, 5])):
        if not made:
            break
        place = chance.randrange(len(made))
        byte = bytes([chance.choice([chance.randrange(256), *_ODD_BYTES])])
        match chance.randrange(4):
            case 0:
                made[place : place + 1] = byte
            case 1:
                del made[place : place + chance.choice([1, 1, 2, 10, len(made)])]
            case 2:
                made[place:place] = byte
            case _:
                other = chance.randrange(len(made))
                made[place:place] = made[other : other + chance.randrange(20)]
    return bytes(made)


def _read(kind: str, path: Path, data: bytes, names: Sequence[str]) -> list[pa.Table] | None:
    path.write_bytes(data)
    with suppress(DataError):
        infer(str(path), kind, {"header": len(names) % 2 == 0, "delimiter": ","})
    return text_rows(kind, path, pa.schema([SCHEMA.field(name) for name in names]))


if __name__ == "__main__":
    kind, first, count, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    path = folder / f"case.{kind}"
    if kind == "json":
        assert all(_read(kind, path, lines, ["a"]) is None for lines in ENDS_ARROW)
    for seed in range(first, first + count):
        some = random.Random(seed).sample(SCHEMA.names, seed % (len(SCHEMA) + 1))
        _read(kind, path, text_case(kind, seed), some)
