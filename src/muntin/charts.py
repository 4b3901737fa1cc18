"""Charts of results: a line for each group, windows on the axis."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from muntin._typing import Floats
from muntin.display import count
from muntin.errors import DataError, MuntinError

MOST_LINES = 10
INSTALL = "pip install matplotlib, or the extra muntin[bench]"

Labels = tuple[str, ...]


def check_drawing() -> None:
    """Refuse where matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        raise MuntinError("charts need matplotlib", hint=INSTALL)


def draw(table: pa.Table, name: str, groups: int, axes: Any = None) -> Any:
    """Draw a query's result: below one another, a chart for each aggregate that is a number.

    A point stands at the end of its window. Where a group has no row for a window that others
    have, its line is broken. Of many groups, those with the largest values are drawn.

    Args:
        table: The result: two bounds of windows, the group columns, the aggregates.
        name: What it is called.
        groups: How many group columns there are.
        axes: Where to draw, for a result of one aggregate; a figure of its own if not given.

    Returns:
        The axes, or an array of them where there are several aggregates.
    """
    check_drawing()
    values = columns_drawn(table, groups)
    if not values:
        raise DataError(f"{name} has no column of numbers", hint="select an aggregate that is one")
    if axes is None:
        import matplotlib.pyplot as plt  # noqa: PLC0415 - an extra, and slow to import

        size = (9, 1.5 + 3 * len(values))
        _, axes = plt.subplots(len(values), sharex=True, figsize=size, layout="constrained")
    each = np.atleast_1d(axes)
    if len(each) != len(values):
        raise DataError(
            f"{name} has {count(len(values), 'column')} of numbers, for {len(each)} axes",
            hint="leave out axes=, or give an array of as many",
        )
    for place, value in zip(each, values, strict=True):
        _draw_value(place, table, value, groups)
    each[0].set_title(name)
    each[-1].set_xlabel(_axis_label(table))
    return axes


def columns_drawn(table: pa.Table, groups: int) -> list[str]:
    """The aggregates of a result that are numbers."""
    return [each for each in table.column_names[2 + groups :] if _is_number(table[each].type)]


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        kinds.is_integer(kind)
        or kinds.is_floating(kind)
        or kinds.is_decimal(kind)
        or kinds.is_boolean(kind)
    )


def _axis_label(table: pa.Table) -> str:
    zone = getattr(table.schema.field(1).type, "tz", None)
    return f"{table.column_names[1]} ({zone})" if zone else str(table.column_names[1])


def _draw_value(axes: Any, table: pa.Table, value: str, groups: int) -> None:
    ends = table.column(1).combine_chunks()
    across, places = np.unique(_positions(ends), return_inverse=True)
    lines = _lines(table, value, groups, places, len(across))
    shown = sorted(lines, key=lambda each: -_height(lines[each]))[:MOST_LINES]
    for label in sorted(shown):
        axes.plot(across, lines[label], marker="o", markersize=3, label=", ".join(label))
    axes.set_ylabel(value)
    axes.grid(alpha=0.3)
    if kinds.is_temporal(ends.type):
        _write_dates(axes, getattr(ends.type, "tz", None))
    if groups and lines:
        names = ", ".join(table.column_names[2 : 2 + groups])
        left = f", {len(shown)} of {len(lines):,}" if len(shown) < len(lines) else ""
        axes.legend(
            title=f"{names}{left}",
            fontsize="small",
            title_fontsize="small",
            # Beside the lines, where it hides none.
            loc="center left",
            bbox_to_anchor=(1, 0.5),
        )


def _positions(ends: pa.Array) -> npt.NDArray[Any]:
    """Windows along the axis: times as numpy has them, in UTC, or numbers."""
    if kinds.is_date(ends.type):
        ends = ends.cast(pa.timestamp("s"))
    positions: npt.NDArray[Any] = ends.to_numpy(zero_copy_only=False)
    return positions


def _lines(
    table: pa.Table, value: str, groups: int, places: npt.NDArray[Any], size: int
) -> Mapping[Labels, Floats]:
    """The values of each group at each window; NaN where there is none."""
    column = table[value]
    if kinds.is_boolean(column.type):
        column = column.cast(pa.int8())
    numbers = pc.cast(column, pa.float64(), safe=False).combine_chunks()
    heights = numbers.to_numpy(zero_copy_only=False).astype(np.float64)
    labels, members = _groups(table, groups)
    drawn = np.full((len(labels), size), np.nan)
    drawn[members, places] = heights
    return dict(zip(labels, drawn, strict=True))


def _groups(table: pa.Table, groups: int) -> tuple[list[Labels], npt.NDArray[Any]]:
    """The groups by their labels, and for each row the number of its group."""
    encoded = [
        pc.dictionary_encode(table.column(2 + each).combine_chunks(), null_encoding="encode")
        for each in range(groups)
    ]
    if not encoded:
        return [()], np.zeros(table.num_rows, np.int64)
    codes = np.stack([each.indices.to_numpy(zero_copy_only=False) for each in encoded], axis=1)
    found, members = np.unique(codes, axis=0, return_inverse=True)
    texts = [["NULL" if v is None else str(v) for v in e.dictionary.to_pylist()] for e in encoded]
    labels = [tuple(text[c] for text, c in zip(texts, row, strict=True)) for row in found]
    return labels, members.reshape(-1)


def _height(line: Floats) -> float:
    finite = np.abs(line[np.isfinite(line)])
    return float(finite.max()) if finite.size else 0.0


def _write_dates(axes: Any, zone: str | None) -> None:
    import matplotlib.dates  # noqa: PLC0415 - an extra, and slow to import

    # Arrow's zones that are offsets, such as +02:00, are none that Python knows by name.
    known = zone if zone and not zone.startswith(("+", "-")) else "UTC"
    dates: Any = matplotlib.dates
    locator = dates.AutoDateLocator(tz=known)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator, tz=known))
