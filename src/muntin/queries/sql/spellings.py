"""From a window's spelling to the window it means, and back."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache

from sqlglot import exp

from muntin.errors import WindowError
from muntin.queries.report import Report
from muntin.queries.sql.clauses import MAX_DIGITS, Extent, WindowClause
from muntin.queries.sql.normalize import canonical_text, quote
from muntin.windows import Window, duration, duration_text
from muntin.windows.spec import Align, Measure

EXTENTS = ("range", "slide", "offset")
_REMEMBERED = 4096
SPARK_HINT = "write window(ts, '12 minutes', '5 minutes'): the time column, the range, the slide"


def is_window_call(node: exp.Expr) -> bool:
    """Whether a node is Spark's window(ts, ...)."""
    return isinstance(node, exp.Anonymous) and node.name.lower() == "window"


def read_window_call(node: exp.Expr, report: Report) -> WindowClause | None:
    """The window that Spark's window(ts, range[, slide[, offset]]) means."""
    arguments = node.expressions
    if not 2 <= len(arguments) <= 4 or not isinstance(arguments[0], exp.Column):
        report.add(node, "window() takes a time column and one to three durations", SPARK_HINT)
        return None
    extents = [_read_extent(argument) for argument in arguments[1:]]
    for argument, extent in zip(arguments[1:], extents, strict=True):
        if extent is None:
            report.add(argument, "window() takes durations that are constants", SPARK_HINT)
    if None in extents:
        return None
    clause = WindowClause(
        spelling="window()",
        measure="time",
        align="start",
        range=extents[0],
        slide=(extents[1:2] or [extents[0]])[0],
        offset=(extents[2:3] or [None])[0],
        time=arguments[0].this,
    )
    return clause.update_positions(node)


def _read_extent(node: exp.Expr) -> Extent | None:
    if isinstance(node, exp.Literal):
        is_plain = not node.is_string and node.name.isdigit() and len(node.name) <= MAX_DIGITS
        value: str | int = int(node.name) if is_plain else node.name
    elif isinstance(node, exp.Interval):
        value = canonical_text(node)
    else:
        return None
    return Extent(this=value).update_positions(node)


def to_window(clause: WindowClause, report: Report) -> Window | None:
    """The window of a clause, or None after its problems are reported."""
    extents = {key: clause.args.get(key) for key in EXTENTS}
    sound = [_check_extent(key, extent, clause, report) for key, extent in extents.items()]
    if not all(sound):
        return None
    try:
        return window_of(clause, {})
    except WindowError as error:
        report.add(clause, error.message, error.hint or "")
        return None


def window_of(clause: WindowClause, written: Mapping[str, int | str]) -> Window:
    """The window of a clause, with other extents than its own where some are written.

    Raises:
        WindowError: If there is no such window.
    """
    extents = {key: clause.args.get(key) for key in EXTENTS}
    values = {
        key: written.get(key, _value(extent))
        for key, extent in extents.items()
        if extent is not None
    }
    for value in values.values():
        _ticks(value)
    slide, measure = extents["slide"], clause.args["measure"]
    by_rows = slide is not None and bool(slide.args.get("rows"))
    return _window(
        values["range"],
        values.get("slide"),
        values.get("offset"),
        clause.args["align"],
        measure,
        "rows" if by_rows else measure,
    )


@lru_cache(maxsize=_REMEMBERED)
def _ticks(value: int | str) -> int:
    """The length of an extent: queries of a set write few different ones."""
    return duration(value)


@lru_cache(maxsize=_REMEMBERED)
def _window(
    range_: int | str,
    slide: int | str | None,
    offset: int | str | None,
    align: Align,
    measure: Measure,
    slide_measure: Measure,
) -> Window:
    written = (range_, slide, offset)
    if slide_measure == "time" and not any(isinstance(value, int) for value in written):
        # Texts are read once each, not once a window. Errors are left to what was written.
        lengths = [None if value is None else _ticks(value) for value in written]
        with suppress(WindowError):
            return Window(
                lengths[0] or 0, lengths[1], lengths[2] or 0, align, measure, unit="duration"
            )
    moved = 0 if offset is None else offset
    return Window(range_, slide, moved, align, measure, slide_measure=slide_measure)


def _check_extent(key: str, extent: exp.Expr | None, clause: WindowClause, report: Report) -> bool:
    if extent is None:
        return True
    if extent.args.get("rows") and clause.args["measure"] == "time" and key != "slide":
        report.add(extent, f"{key} counts rows in a window over time", "write [ROWS 100 SLIDE 10]")
        return False
    value = _value(extent)
    if clause.args["measure"] == "rows" and isinstance(value, str) and _is_number(value):
        report.add(extent, f"{key} {value} does not count rows", "write a whole number, as in 100")
        return False
    try:
        _ticks(value)
    except WindowError as error:
        report.add(extent, error.message, error.hint or "")
        return False
    return True


def _is_number(text: str) -> bool:
    """Whether a text is a number alone, without a unit."""
    with suppress(ValueError):
        float(text)
        return True
    return False


def _value(extent: exp.Expr) -> int | str:
    value: int | str = extent.args["this"]
    return value


def window_text(window: Window, time: str | None = None) -> str:
    """The window in brackets, the same text for all windows with equal ends.

    >>> window_text(Window("12 minutes", "5 minutes", align="start"))
    "[RANGE '12 minutes' SLIDE '5 minutes' OFFSET '2 minutes']"
    """
    words = ["ROWS" if window.measure == "rows" else "RANGE", _text(window, window.range)]
    if window.slide is not None:
        by_rows = window.slide_measure == "rows"
        words += ["SLIDE", str(window.slide) if by_rows else _text(window, window.slide)]
        if by_rows and window.measure == "time":
            words.append("TUPLES")
    if window.periodic and window.phase:
        words += ["OFFSET", _text(window, window.phase)]
    if time is not None:
        words += ["WATTR", quote(time)]
    return f"[{' '.join(words)}]"


def _text(window: Window, value: int) -> str:
    is_duration = window.unit == "duration" and window.measure == "time"
    return f"'{duration_text(value)}'" if is_duration else str(value)
