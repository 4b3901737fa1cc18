"""String functions. Positions and lengths count code points, from 1; case maps as in Unicode."""

from __future__ import annotations

import polars as pl

from muntin.expressions import types as t
from muntin.expressions.binding.coercion import require
from muntin.expressions.evaluation.parts import Part, strict
from muntin.expressions.registry import Function
from muntin.expressions.tree import BindingError, Call, Literal, Node

MAX_PAD = 10_000
LONGEST = 2**31 - 1


def _bind(name: str, args: list[Node]) -> Node:
    return Call(name, tuple(require(arg, t.STRING, name) for arg in args), t.STRING)


def _bind_test(name: str, args: list[Node]) -> Node:
    return Call(name, tuple(require(arg, t.STRING, name) for arg in args), t.BOOLEAN)


def _bind_length(name: str, args: list[Node]) -> Node:
    arg = args[0] if args[0].type == t.BINARY else require(args[0], t.STRING, name)
    return Call(name, (arg,), t.INT)


def _bind_position(name: str, args: list[Node]) -> Node:
    return Call(name, tuple(require(arg, t.STRING, name) for arg in args), t.INT)


def _bind_slice(name: str, args: list[Node]) -> Node:
    numbers = [require(arg, t.INT, name) for arg in args[1:]]
    return Call(name, (require(args[0], t.STRING, name), *numbers), t.STRING)


def text_of(node: Node, function: str, what: str) -> str:
    """A string constant's text; columns are refused."""
    if isinstance(node, Literal) and isinstance(node.value, str):
        return node.value
    raise BindingError(f"{function} wants a string constant as {what}", hint="write it as '...'")


def _bind_constants(name: str, args: list[Node]) -> Node:
    for arg in args[1:]:
        text_of(arg, name, "its further argument")
    return _bind(name, args)


def _bind_pad(name: str, args: list[Node]) -> Node:
    size = args[1]
    if not isinstance(size, Literal) or not isinstance(size.value, int):
        raise BindingError(f"{name} wants a constant length", hint=f"write {name}(s, 10)")
    if size.value > MAX_PAD:
        raise BindingError(f"{name} to {size.value} characters", hint=f"at most {MAX_PAD}")
    fill = args[2] if len(args) > 2 else Literal(" ", t.STRING, "' '")
    text_of(fill, name, "what to pad with")
    return Call(name, (require(args[0], t.STRING, name), size, fill), t.STRING)


def _upper(call: Call, parts: list[Part]) -> Part:
    return Part(parts[0].value.str.to_uppercase(), parts[0].failed)


def _lower(call: Call, parts: list[Part]) -> Part:
    return Part(parts[0].value.str.to_lowercase(), parts[0].failed)


def _length(call: Call, parts: list[Part]) -> Part:
    value = parts[0].value
    size = value.bin.size() if call.args[0].type == t.BINARY else value.str.len_chars()
    return Part(size.cast(pl.Int32), parts[0].failed)


def _reverse(call: Call, parts: list[Part]) -> Part:
    # polars' own reverse keeps combining characters with their base; Spark reverses code points.
    letters = parts[0].value.str.split("").list.reverse().list.join("")
    return Part(letters, parts[0].failed)


def _trim(call: Call, parts: list[Part]) -> Part:
    """Spaces only, not all white space, unless characters are given."""
    letters = " "
    if len(call.args) > 1:
        letters = text_of(call.args[1], call.function, "what to trim")
    if not letters:
        return parts[0]
    value = parts[0].value.str
    trimmed = {"trim": value.strip_chars, "ltrim": value.strip_chars_start}
    trimmed["rtrim"] = value.strip_chars_end
    return Part(trimmed[call.function](letters), parts[0].failed)


def _substring(call: Call, parts: list[Part]) -> Part:
    """From a position on: 0 counts as 1, negative ones from the end, and may lie before it."""
    value = parts[0].value
    known = [arg.value for arg in call.args[1:] if isinstance(arg, Literal)]
    if len(known) == len(parts) - 1 and all(isinstance(n, int) and n >= 0 for n in known):
        # The usual case, many times faster than positions that differ by row.
        sizes = [int(number or 0) for number in known[1:]]
        return Part(value.str.slice(max(int(known[0] or 0) - 1, 0), *sizes), parts[0].failed)
    position = parts[1].value.cast(pl.Int64)
    length = parts[2].value.cast(pl.Int64) if len(parts) > 2 else pl.lit(LONGEST, dtype=pl.Int64)
    from_end = value.str.len_chars().cast(pl.Int64) + position
    start = pl.when(position > 0).then(position - 1).when(position < 0).then(from_end)
    start = start.when(position == 0).then(position)
    return strict(_cut(value, start, length), parts)


def _cut(value: pl.Expr, start: pl.Expr, length: pl.Expr) -> pl.Expr:
    """`length` characters from `start`, of which those before the string are lost."""
    begin = pl.max_horizontal(start, pl.lit(0, dtype=pl.Int64))
    count = pl.max_horizontal(start + length - begin, pl.lit(0, dtype=pl.Int64))
    present = start.is_not_null() & length.is_not_null()
    return pl.when(present).then(value.str.slice(begin, count))


def _left(call: Call, parts: list[Part]) -> Part:
    size = call.args[1]
    if isinstance(size, Literal) and isinstance(size.value, int):
        return Part(parts[0].value.str.slice(0, max(size.value, 0)), parts[0].failed)
    length = parts[1].value.cast(pl.Int64)
    return strict(_cut(parts[0].value, length * 0, length), parts)


def _right(call: Call, parts: list[Part]) -> Part:
    value, length = parts[0].value, parts[1].value.cast(pl.Int64)
    start = value.str.len_chars().cast(pl.Int64) - length
    return strict(_cut(value, start, length), parts)


def _concat(call: Call, parts: list[Part]) -> Part:
    return strict(pl.concat_str([part.value for part in parts], ignore_nulls=False), parts)


def _replace(call: Call, parts: list[Part]) -> Part:
    old = text_of(call.args[1], "replace", "what to replace")
    new = text_of(call.args[2], "replace", "the replacement") if len(call.args) > 2 else ""
    if not old:
        return parts[0]
    return Part(parts[0].value.str.replace_all(old, new, literal=True), parts[0].failed)


def _starts(call: Call, parts: list[Part]) -> Part:
    return strict(parts[0].value.str.starts_with(parts[1].value), parts)


def _ends(call: Call, parts: list[Part]) -> Part:
    return strict(parts[0].value.str.ends_with(parts[1].value), parts)


def _contains(call: Call, parts: list[Part]) -> Part:
    return strict(parts[0].value.str.contains(parts[1].value, literal=True), parts)


def _instr(call: Call, parts: list[Part]) -> Part:
    """The first position of a substring, 0 if there is none; an empty one is at 1."""
    value, wanted = parts[0].value, parts[1].value
    # Not splitn: of a constant string it cuts at the first row's substring only.
    offset = value.str.find(wanted, literal=True)
    before = value.cast(pl.Binary).bin.slice(0, offset).cast(pl.String).str.len_chars()
    position = (
        pl.when(offset.is_not_null())
        .then(before.cast(pl.Int32) + 1)
        .when(value.is_not_null() & wanted.is_not_null())
        .then(pl.lit(0, dtype=pl.Int32))
    )
    return strict(position, parts)


def _pad(call: Call, parts: list[Part]) -> Part:
    """Filled up to a length, or cut to it."""
    assert isinstance(call.args[1], Literal)
    size = max(int(call.args[1].value or 0), 0)
    fill = text_of(call.args[2], call.function, "what to pad with")
    value = parts[0].value
    missing = -(value.str.len_chars().cast(pl.Int64) - size)
    filling = pl.lit((fill * (size // len(fill) + 1))[:size] if fill else "")
    padding = filling.str.slice(0, pl.max_horizontal(missing, pl.lit(0, dtype=pl.Int64)))
    pieces = [padding, value] if call.function == "lpad" else [value, padding]
    padded = pl.concat_str(pieces, ignore_nulls=False)
    cut = value.str.slice(0, size)
    return Part(pl.when(missing > 0).then(padded).otherwise(cut), parts[0].failed)


FUNCTIONS = (
    Function("upper", 1, 1, _bind, _upper),
    Function("lower", 1, 1, _bind, _lower),
    Function("length", 1, 1, _bind_length, _length),
    Function("reverse", 1, 1, _bind, _reverse),
    Function("trim", 1, 2, _bind_constants, _trim),
    Function("ltrim", 1, 2, _bind_constants, _trim),
    Function("rtrim", 1, 2, _bind_constants, _trim),
    Function("substring", 2, 3, _bind_slice, _substring),
    Function("left", 2, 2, _bind_slice, _left),
    Function("right", 2, 2, _bind_slice, _right),
    Function("concat", 1, None, _bind, _concat),
    Function("replace", 2, 3, _bind_constants, _replace),
    Function("startswith", 2, 2, _bind_test, _starts),
    Function("endswith", 2, 2, _bind_test, _ends),
    Function("contains", 2, 2, _bind_test, _contains),
    Function("instr", 2, 2, _bind_position, _instr),
    Function("lpad", 2, 3, _bind_pad, _pad),
    Function("rpad", 2, 3, _bind_pad, _pad),
)
