"""The windows of one row query: a range for each stream, and one slide for all."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from muntin.queries.report import Report
from muntin.queries.sql.spellings import to_window
from muntin.windows import Window, duration_text
from muntin.windows.spec import Unit

ROWS_HINT = "use a window over time: [RANGE '10 minutes']"
UNIT_HINT = (
    "streams with plain numbers and with timestamps cannot be joined: write all windows alike"
)


@dataclass(frozen=True)
class Lifetime:
    """How long rows of one stream live: ``range`` ticks, or one tick if it is None."""

    range: int | None


class Extents:
    """The windows of a query, as they are found."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.unit: Unit | None = None
        self.internal = False
        self._windows: list[tuple[exp.Expr, Window | None]] = []

    @property
    def sliding(self) -> bool:
        """Whether a window found so far names a slide."""
        return any(window is not None and window.slide for _, window in self._windows)

    def read(self, clause: exp.Expr) -> Lifetime | None:
        """The lifetime of a stream's rows; None after its problems are reported."""
        now = bool(clause.args.get("now"))
        if clause.args.get("internal") and not self._windows:
            self.internal = True
        if bool(clause.args.get("internal")) != self.internal:
            hint = "write INTERNAL in all windows of the query, or in none"
            self.report.add(clause, "INTERNAL in some windows only", hint)
        if now and clause.args.get("slide") is None:
            self._windows.append((clause, None))
            return Lifetime(None)
        if now:
            clause = clause.copy()
            clause.set("range", clause.args["slide"].copy())
        window = to_window(clause, self.report)  # type: ignore[arg-type]
        if window is None or not self._check(clause, window):
            return None
        self.unit = window.unit
        self._windows.append((clause, window))
        return Lifetime(None if now else window.range)

    def _check(self, clause: exp.Expr, window: Window) -> bool:
        if window.measure == "rows" or window.slide_measure == "rows":
            message = "a window that counts rows is not supported here yet"
            self.report.add(clause, message, ROWS_HINT)
            return False
        if self.unit is not None and window.unit != self.unit:
            self.report.add(clause, "a plain number beside a duration", UNIT_HINT)
            return False
        return True

    def settle(self) -> tuple[int, int] | None:
        """The slide and the phase of window ends, if there are some; the same for all windows."""
        given = [(clause, window) for clause, window in self._windows if window is not None]
        sliding = [(clause, window) for clause, window in given if window.slide is not None]
        if not sliding:
            return None
        first = sliding[0][1]
        for clause, window in sliding[1:]:
            if (window.period, window.phase) != (first.period, first.phase):
                hint = "write the same SLIDE and OFFSET in all windows, or in just one"
                message = "this window ends at other times than the first"
                if window.period != first.period:
                    ends = _text(window.period, window), _text(first.period, first)
                    message = f"this window slides by {ends[0]}, and the first by {ends[1]}"
                self.report.add(clause, message, hint)
        by_start = [clause for clause, window in sliding if window.align == "start"]
        sizes = dict.fromkeys(_text(window.range, window) for _, window in given)
        if by_start and len(sizes) > 1:
            message = (
                f"HOP and TUMBLE need windows of one size, and these are of {' and '.join(sizes)}"
            )
            hint = (
                "give all the same size, or write [RANGE ... SLIDE ...], which may differ in size"
            )
            self.report.add(by_start[0], message, hint)
        return first.period, first.phase


def _text(ticks: int, window: Window) -> str:
    return str(ticks) if window.unit == "plain" else duration_text(ticks)


def read_lasting(clause: exp.Expr, unit: Unit | None, report: Report) -> int | None:
    """How long results of Wstream live, in ticks; None after its problems are reported."""
    others = [key for key in ("slide", "offset", "time", "now", "internal") if clause.args.get(key)]
    if others or clause.args["measure"] == "rows":
        report.add(clause, "Wstream takes a RANGE only", "write Wstream(...)[RANGE '5 minutes']")
        return None
    window = to_window(clause, report)  # type: ignore[arg-type]
    if window is None:
        return None
    if unit is not None and window.unit != unit:
        report.add(clause, "a plain number beside a duration", UNIT_HINT)
        return None
    return window.range
