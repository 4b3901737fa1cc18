"""String patterns that are a range of strings."""

from __future__ import annotations

from muntin.expressions.tree import Call, Literal


def prefix_of(call: Call) -> tuple[str, bool] | None:
    """The constant start that a string must have, and whether more may follow it.

    None for patterns with other wildcards.

    >>> from muntin.expressions import bind_text
    >>> import pyarrow as pa
    >>> schema = pa.schema([("s", pa.string())])
    >>> [prefix_of(bind_text(f"s LIKE '{p}'", schema).root) for p in ("ab%", "ab", "a%b")]
    [('ab', True), ('ab', False), None]
    """
    pattern = call.args[1]
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        return None
    if call.function == "startswith":
        return pattern.value, True
    from muntin.expressions.functions.patterns import tokens  # noqa: PLC0415  (loads polars)

    escape = call.args[2].value if len(call.args) > 2 else "\\"  # type: ignore[union-attr]
    letters = tokens(pattern.value, str(escape))
    fixed = letters[:-1] if letters and letters[-1] == ("%", True) else letters
    if any(wild for _, wild in fixed):
        return None
    return "".join(letter for letter, _ in fixed), len(fixed) < len(letters)


def range_of(prefix: str, longer: bool) -> tuple[bytes, bytes | None]:
    r"""The first string with a prefix, and the first behind all of them if there is one.

    >>> range_of("ab", True), range_of("ab", False), range_of("", True)
    ((b'ab', b'ac'), (b'ab', b'ab\x00'), (b'', None))
    """
    low = prefix.encode("utf-8", "surrogatepass")
    if not longer:
        return low, low + b"\0"
    # No byte of UTF-8 is 255, so the last one has a next.
    return low, (low[:-1] + bytes([low[-1] + 1]) if low else None)
