"""The total order of SQL values that min, max, first and last decide by."""

from __future__ import annotations

import math
from typing import Any


def rank(value: Any) -> Any:
    """A key that sorts values of one type as Spark sorts them, NULL first.

    NaN is greater than every number. -0.0 is less than 0.0, so that which of the two survives
    does not depend on the order of rows.

    >>> sorted([math.nan, 0.0, None, -0.0, math.inf], key=rank)
    [None, -0.0, 0.0, inf, nan]
    """
    if value is None:
        return (0,)
    if isinstance(value, float):
        if math.isnan(value):
            return (2,)
        return (1, value, math.copysign(1.0, value))
    return (1, value)
