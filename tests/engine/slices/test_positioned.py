"""Values of sealed entries in stretches: written once, put together, and read again."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from muntin.aggregates.algebra import Part
from muntin.aggregates.columns.by_part import empty
from muntin.engine.slices.finals.pieces import column_of, is_plain
from muntin.engine.slices.finals.positioned import ARROW, Positioned, united_entries

TEXTS = pa.array(["z", "a", None, "m", "a", "é", "b", "z", "a", "0", "", "m"])
NUMBERS = pa.array([3.5, None, -0.0, float("nan"), 1.0, 3.5, 2.0, 2.0, -1.0, 0.0, 3.5, 9.0])


@pytest.mark.parametrize(
    "part",
    [
        Part("set", (pa.string(),)),
        Part("runs", (pa.float64(),)),
        Part("pairs", (pa.string(), pa.float64())),
        Part("list", (pa.string(),)),
        Part("registers:7", (pa.string(),)),
    ],
    ids=str,
)
def test_stretches_come_back_as_they_were(part: Part) -> None:
    """Entries of places 0 to 3, three rows each; the first has left."""
    assert is_plain(part)
    kept = column_of(part)
    assert isinstance(kept, Positioned)
    args = tuple(TEXTS if pa.types.is_string(kind) else NUMBERS for kind in part.types)
    for first in range(4):
        rows = slice(3 * first, 3 * first + 3)
        column = empty(part, 1)
        column.update(np.zeros(3, np.int64), tuple(each[rows] for each in args), np.arange(3))
        kept.take(first, np.array([first]), column)
    kept.forget(1)
    whole = kept.between(1, 4).to_arrow()
    pieces = [kept.stretch(1, 2)[ARROW], kept.stretch(2, 4)[ARROW]]
    for stretches in ([(1, pieces[0]), (2, pieces[1])], [(1, united_entries(pieces))]):
        again = column_of(part)
        assert isinstance(again, Positioned)
        for first, stretch in stretches:
            size = 4 - first if len(stretches) == 1 or first == 2 else 1
            again.keep(first, np.arange(first, first + size), {ARROW: stretch})
        assert repr(again.between(1, 4).to_arrow().to_pydict()) == repr(whole.to_pydict())
        assert repr(again.between(2, 3).to_arrow().to_pydict()) == repr(
            kept.between(2, 3).to_arrow().to_pydict()
        )
