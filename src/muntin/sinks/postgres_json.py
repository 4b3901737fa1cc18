"""Lists and structs as JSON text, a column at a time."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from muntin.sinks.postgres_types import is_list

TEXT = pa.large_string()
_ESCAPES = {
    "\\": "\\\\",
    '"': '\\"',
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    **{chr(code): f"\\u{code:04x}" for code in range(32) if chr(code) not in "\n\r\t"},
}
_NOT_IN_JSON = ("nan", "inf", "-inf")


def text(value: str) -> pa.Scalar:
    """A string as Arrow's functions of large strings take it."""
    return pa.scalar(value, TEXT)


def joined(*parts: Any, between: str = "", null: str | None = None) -> pa.Array:
    """Strings put together row by row; a NULL makes the row NULL, unless it is shown as such."""
    handling = {} if null is None else {"null_handling": "replace", "null_replacement": null}
    return pc.binary_join_element_wise(*parts, text(between), **handling)


def json_text(array: pa.Array) -> pa.Array:
    """Each value as JSON; NULL stays NULL inside lists and structs, and is none outside.

    NaN and the infinities, which JSON lacks, become strings, as do times and bytes.

    >>> json_text(pa.array([{"a": [1.5, None, float("nan")]}, None])).to_pylist()
    ['{"a":[1.5,null,"nan"]}', None]
    """
    kind = array.type
    if is_list(kind):
        return _lists(array)
    if pa.types.is_struct(kind):
        return _structs(array)
    if pa.types.is_null(kind):
        return array.cast(TEXT)
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return array.cast(TEXT)
    if pa.types.is_floating(kind):
        numbers = array.cast(TEXT)
        odd = pc.is_in(numbers, pa.array(_NOT_IN_JSON, TEXT))
        return pc.if_else(odd, _strings(numbers), numbers)
    return _strings(array.cast(TEXT))


def _strings(array: pa.Array) -> pa.Array:
    for character, escape in _ESCAPES.items():
        array = pc.replace_substring(array, character, escape)
    return joined(text('"'), array, text('"'))


def _lists(array: pa.Array) -> pa.Array:
    lengths = pc.list_value_length(array).cast(pa.int64())
    offsets = pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(lengths.fill_null(0))])
    values = json_text(array.flatten()).fill_null("null")
    inner = pc.binary_join(pa.LargeListArray.from_arrays(offsets, values), text(","))
    return pc.if_else(lengths.is_valid(), joined(text("["), inner, text("]")), text_null())


def _structs(array: pa.Array) -> pa.Array:
    members = [
        joined(
            _strings(pa.array([field.name], TEXT))[0],
            json_text(child).fill_null("null"),
            between=":",
        )
        for field, child in zip(array.type, array.flatten(), strict=True)
    ]
    inner = joined(*members, between=",") if members else pa.array([""] * len(array), TEXT)
    return pc.if_else(array.is_valid(), joined(text("{"), inner, text("}")), text_null())


def text_null() -> pa.Scalar:
    """No string."""
    return pa.scalar(None, TEXT)
