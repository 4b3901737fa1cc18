"""Decimal constants of more digits than Python's own context keeps."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa

from muntin.expressions import Evaluator, bind_text


def test_every_digit_is_kept() -> None:
    text = "12345678901234567890123456789.01234567"
    table = pa.table({"a": [1, 2]})
    values = Evaluator([bind_text(f"if(a > 0, {text}, {text})", table.schema)])(table)[0].values
    assert values.to_pylist() == [Decimal(text)] * 2
