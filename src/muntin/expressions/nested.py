"""Fields of structs, elements of arrays and their number, taken out of stored columns by Arrow.

What is taken out is a column like any other, whatever type it is stored as. Indices are constants;
they count as Spark's: `a[0]` and `get(a, 0)` from 0, `element_at(a, 1)` from 1, and from the end
if negative.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from muntin.expressions import types as t
from muntin.expressions.storage import spark_type
from muntin.expressions.tree import BindingError, Call, Column, Literal, Node, walk

FIELD, ITEM, GET, ELEMENT_AT, TRY_ELEMENT_AT = "field", "[]", "get", "element_at", "try_element_at"
ELEMENTS = (ITEM, GET, ELEMENT_AT, TRY_ELEMENT_AT)
SIZE = "size"
FROM_ONE = (ELEMENT_AT, TRY_ELEMENT_AT)
STEPS = frozenset([FIELD, SIZE, *ELEMENTS])


def is_step(node: Node) -> bool:
    """Whether a node takes a part of a nested value."""
    return isinstance(node, Call) and node.function in STEPS


def is_array(kind: pa.DataType) -> bool:
    """Whether values are lists of any layout, and no maps."""
    lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    views = (pa.types.is_list_view, pa.types.is_large_list_view)
    return any(test(kind) for test in (*lists, *views))


def field_of(whole: Node, name: str, shown: str) -> Call:
    """The field of a struct, found regardless of case; its type is as it is stored."""
    kind = whole.type
    if not pa.types.is_struct(kind):
        raise BindingError(f"{shown} has no fields, it is of type {kind}", hint=_hint(shown, kind))
    names = [kind.field(place).name for place in range(kind.num_fields)]
    found = [place for place, known in enumerate(names) if known.lower() == name.lower()]
    if len(found) != 1:
        what = f"{shown} has no field {name}" if not found else f"field {name} is ambiguous"
        raise BindingError(what, hint=f"its fields are {', '.join(names) or 'none'}")
    chosen = kind.field(found[0])
    return Call(FIELD, (whole, Literal(found[0], pa.int32(), chosen.name)), chosen.type)


def element_of(function: str, whole: Node, index: Node, shown: str) -> Call:
    """An element of an array; its type is as it is stored."""
    if not is_array(whole.type):
        hint = _hint(shown, whole.type)
        raise BindingError(f"{shown} is not an array, it is of type {whole.type}", hint=hint)
    if isinstance(index, Call) and not any(isinstance(part, Column) for part in walk(index)):
        from muntin.expressions.evaluation.compiler import folded  # noqa: PLC0415  (loads polars)

        value = folded(index).value
        index = Literal(value if isinstance(value, int) else None, index.type, str(value))
    if not isinstance(index, Literal) or not t.is_integer(index.type) or index.value is None:
        raise BindingError(
            f"the index into {shown} is not a constant integer",
            hint="write a number, or take the element out into a column of its own first",
        )
    return Call(function, (whole, index), whole.type.value_type)


def size_of(whole: Node, shown: str) -> Call:
    """The number of an array's elements; NULL where there is no array."""
    if not is_array(whole.type):
        raise BindingError(
            f"{shown} is not an array, it is of type {whole.type}",
            hint="length(x) is that of a string; only arrays have a size",
        )
    return Call(SIZE, (whole,), t.INT)


def value_of(step: Call, shown: str) -> Call:
    """The step as a value of Spark's; refused while it is nested itself."""
    if pa.types.is_nested(step.type):
        raise BindingError(
            f"{shown} is of type {step.type}, which is not a single value",
            hint=_hint(shown, step.type),
        )
    return Call(step.function, step.args, spark_type(step.type))


def _hint(shown: str, kind: pa.DataType) -> str:
    if pa.types.is_struct(kind) and kind.num_fields:
        return f"name a field of it, such as {shown}.{kind.field(0).name}"
    if is_array(kind):
        return f"name an element of it, such as {shown}[0]"
    if pa.types.is_map(kind):
        return "take the values you need out of the map into columns of their own first"
    return "only structs have fields, and only arrays have elements"


def can_fail(step: Node) -> bool:
    """Whether an element may be missing where Spark fails then."""
    if not isinstance(step, Call):
        return False
    zero = step.function == TRY_ELEMENT_AT and _index(step) == 0
    return zero or step.function in (ITEM, ELEMENT_AT) or can_fail(step.args[0])


def extract(table: pa.Table, step: Node) -> tuple[pa.ChunkedArray, np.ndarray]:
    """The part of every row, and where taking it failed.

    >>> table = pa.table({"a": [[1, 2], [], None]})
    >>> whole = Column("a", table.schema.field("a").type)
    >>> first = element_of(ITEM, whole, Literal(0, pa.int32(), "0"), "a")
    >>> values, failed = extract(table, first)
    >>> values.to_pylist(), failed.tolist()
    ([1, None, None], [False, True, False])
    """
    if isinstance(step, Column):
        return table.column(step.name), np.zeros(table.num_rows, np.bool_)
    assert isinstance(step, Call)
    whole, failed = extract(table, step.args[0])
    if step.function == FIELD:
        return pc.struct_field(whole, [_index(step)]), failed
    if step.function == SIZE:
        sizes = [pc.list_value_length(chunk).cast(pa.int32()) for chunk in whole.chunks]
        return pa.chunked_array(sizes, pa.int32()), failed
    taken = [_element(chunk, step) for chunk in whole.chunks]
    values = pa.chunked_array([value for value, _ in taken], whole.type.value_type)
    missing = np.concatenate([np.empty(0, np.bool_), *(lost for _, lost in taken)])
    return values, failed | missing


def _element(lists: pa.Array, step: Call) -> tuple[pa.Array, np.ndarray]:
    if pa.types.is_fixed_size_list(lists.type):
        lists = lists.cast(pa.large_list(lists.type.value_type))
    lengths = pc.list_value_length(lists).fill_null(0).to_numpy().astype(np.int64)
    present = lists.is_valid().to_numpy(zero_copy_only=False)
    places = _places(step, lengths)
    inside = present & (places >= 0) & (places < lengths)
    chosen = pa.array(lists.offsets.to_numpy()[: len(lists)] + places, pa.int64(), mask=~inside)
    silent = step.function == GET or (step.function == TRY_ELEMENT_AT and _index(step) != 0)
    return lists.values.take(chosen), np.zeros_like(inside) if silent else present & ~inside


def _places(step: Call, lengths: np.ndarray) -> np.ndarray:
    index = _index(step)
    if step.function in FROM_ONE and index < 0:
        return lengths + index
    # The element 0 of those that count from 1 is none.
    return np.full_like(lengths, index - (step.function in FROM_ONE))


def _index(step: Call) -> int:
    index = step.args[1]
    assert isinstance(index, Literal)
    assert isinstance(index.value, int)
    return index.value
