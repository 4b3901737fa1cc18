"""CSV and JSON lines read by workers: a range of bytes, cut at the ends of lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, json

from muntin.expressions.zones import UTC, Zone
from muntin.spark.files.columns import UnlikeSparkError, as_parsed
from muntin.spark.files.pieces import COMPRESSED, Piece

_BLOCK = 1 << 25
# Types that Arrow reads from JSON as Spark does; all others are read as text first.
_JSON_TYPES = (pa.int64(), pa.float64(), pa.bool_(), pa.string())
# Blanks at either end of a line; a run of them is looked at once.
_BLANKS = re.compile(rb"(?m)^[ \t]+|(?<![ \t])[ \t]+$")
_BLANK_LINE = re.compile(rb"(?m)^[\x01-\x09\x0b-\x20]+$")
_EMPTY = re.compile(rb"\n{2,}")


@dataclass(frozen=True)
class TextFormat:
    """How lines become columns.

    ``fields`` are those of the file, in its order, and ``named`` says whether a line of names
    must give them; ``zone`` is that of times without one.
    """

    format: str
    fields: tuple[str, ...]
    header: bool
    separator: str
    zone: Zone = UTC
    named: bool = True

    def read(self, piece: Piece, schema: pa.Schema) -> Iterator[pa.Table]:
        """The rows of a piece as tables of a schema."""
        parse = self._csv if self.format == "csv" else self._json
        try:
            for first, block in _blocks(piece):
                lines = _packed(self._lines(block, first and not piece.start))
                lines = self._checked(lines)
                if lines:
                    parsed = parse(lines, schema)
                    yield _typed(parsed, piece, schema, lines.count(b"\n") + 1, self.zone)
        except (pa.ArrowException, OSError, EOFError, UnicodeDecodeError) as error:
            raise UnlikeSparkError(f"{piece.path} cannot be read: {error}") from error

    def _lines(self, block: bytes, is_first: bool) -> bytes:
        if is_first and block.startswith(b"\xef\xbb\xbf"):
            raise UnlikeSparkError("the file starts with a byte order mark")
        if block.count(b"\r") != block.count(b"\r\n") or b"\0" in block:
            raise UnlikeSparkError("lines end in an unusual way")
        if not (is_first and self.header):
            return block
        header, _, rest = block.partition(b"\n")
        if not header.strip():
            raise UnlikeSparkError("the line of names is empty")
        if self.named:
            self._check_names(header)
        return rest

    def _check_names(self, header: bytes) -> None:
        """Refuse a line of names that gives other columns, or these in another order."""
        names = [each.strip().strip('"') for each in header.decode().split(self.separator)]
        if [name.lower() for name in names] != [name.lower() for name in self.fields]:
            raise UnlikeSparkError(
                f"its columns are {', '.join(names)}, instead of {', '.join(self.fields)}"
            )

    def _checked(self, lines: bytes) -> bytes:
        """The lines that hold a row each; refused where readers would see other rows."""
        if self.format == "json":
            return _objects(lines)
        _check_quotes(lines, self.separator)
        # A line of blanks is a row to Arrow where it has all columns, and never to Spark.
        if (len(self.fields) == 1 or self.separator.isspace()) and _BLANK_LINE.search(lines):
            raise UnlikeSparkError("a line holds nothing but blanks")
        return lines

    def _csv(self, lines: bytes, schema: pa.Schema) -> pa.Table:
        wanted = [name for name in self.fields if name in schema.names]
        return csv.read_csv(
            pa.BufferReader(lines),
            read_options=csv.ReadOptions(
                use_threads=False, block_size=len(lines) + 1, column_names=list(self.fields)
            ),
            parse_options=csv.ParseOptions(delimiter=self.separator),
            convert_options=csv.ConvertOptions(
                # A column is needed to count the rows by.
                include_columns=wanted or list(self.fields[:1]),
                column_types=dict.fromkeys(self.fields, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )

    def _json(self, lines: bytes, schema: pa.Schema) -> pa.Table:
        wanted = [field for field in schema if field.name in self.fields]
        kinds = [
            pa.field(each.name, each.type if each.type in _JSON_TYPES else pa.string())
            for each in wanted
        ]
        parsed = json.read_json(
            pa.BufferReader(lines),
            read_options=json.ReadOptions(use_threads=False, block_size=len(lines) + 1),
            parse_options=json.ParseOptions(
                explicit_schema=pa.schema(kinds), unexpected_field_behavior="ignore"
            ),
        )
        _check_values(parsed, lines)
        return parsed


def _typed(parsed: pa.Table, piece: Piece, schema: pa.Schema, lines: int, zone: Zone) -> pa.Table:
    if parsed.num_rows != lines:
        raise UnlikeSparkError("a record does not take one line")
    columns: Sequence[pa.Array | pa.ChunkedArray] = [
        pa.repeat(piece.values[field.name], lines)
        if field.name in piece.values
        else as_parsed(parsed[field.name], field.type, zone)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _packed(block: bytes) -> bytes:
    """Lines without those that are empty, and without a break after the last."""
    lines = block.replace(b"\r", b"").strip(b"\n")
    return _EMPTY.sub(b"\n", lines) if b"\n\n" in lines else lines


def _check_values(parsed: pa.Table, lines: bytes) -> None:
    """Refuse what Arrow takes from JSON where Spark has NULL: half a surrogate, and ``Inf``."""
    parsed.validate(full=True)
    doubles = [column for column in parsed.columns if pa.types.is_floating(column.type)]
    if not any(pc.any(pc.is_inf(column)).as_py() for column in doubles):
        return
    if lines.count(b"Inf") != lines.count(b"Infinity"):
        raise UnlikeSparkError("infinity is written in an unusual way")


def _objects(lines: bytes) -> bytes:
    """The lines, each without blanks around its object; lines that hold none are refused.

    Arrow ends the process at a first line ``null``. And where every line begins and ends as an
    object does, one that goes on in another line is a mistake to Arrow: as many as there are
    lines are one in each.
    """
    lines.decode()  # elsewhere Arrow takes over any bytes, and Spark no row that has them
    if not _are_objects(lines):
        lines = _packed(_BLANKS.sub(b"", lines))
        if lines and not _are_objects(lines):
            raise UnlikeSparkError("a line does not hold one object")
    return lines


def _are_objects(lines: bytes) -> bool:
    return (
        lines.startswith(b"{")
        and lines.endswith(b"}")
        and lines.count(b"\n{") == lines.count(b"}\n") == lines.count(b"\n")
    )


def _check_quotes(lines: bytes, separator: str) -> None:
    """Refuse quotes that do not stand around a whole value, and escapes."""
    if b"\\" in lines or b'""' in lines:
        raise UnlikeSparkError("values hold quotes or backslashes")
    if b'"' not in lines:
        return
    text = np.frombuffer(b"\n" + lines + b"\n", np.uint8)
    quotes = np.flatnonzero(text == ord('"'))
    ends = np.isin(text, np.frombuffer(f"{separator}\r\n".encode(), np.uint8))
    if quotes.size % 2 or not (ends[quotes[::2] - 1].all() and ends[quotes[1::2] + 1].all()):
        raise UnlikeSparkError("quotes stand within values")


def _blocks(piece: Piece) -> Iterator[tuple[bool, bytes]]:
    """Whole lines of a piece, block by block, and whether they are the first."""
    path = Path(piece.path)
    if path.name.lower().endswith(COMPRESSED):
        with pa.input_stream(str(path), compression="detect") as stream:
            yield from _whole_lines(stream.read, None)
        return
    with path.open("rb") as file:
        if piece.start:
            file.seek(piece.start - 1)
            file.readline()
        yield from _whole_lines(file.read, piece.end - file.tell(), file.readline)


def _whole_lines(
    read: Callable[[int], bytes],
    left: int | None,
    rest_of_line: Callable[[], bytes] | None = None,
) -> Iterator[tuple[bool, bytes]]:
    kept, first = b"", True
    while left is None or left > 0:
        block = read(_BLOCK if left is None else min(_BLOCK, left))
        if not block:
            break
        if left is not None:
            left -= len(block)
        if left == 0 and rest_of_line is not None and not block.endswith(b"\n"):
            block += rest_of_line()
            yield first, kept + block
            return
        whole, newline, after = block.rpartition(b"\n")
        if newline:
            yield first, kept + whole + newline
            kept, first = after, False
        else:
            kept += block
    if kept:
        yield first, kept
