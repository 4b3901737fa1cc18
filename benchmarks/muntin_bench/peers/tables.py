"""What was measured beside peers, as tables, promises and plots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from muntin_bench.measure import Timing
from muntin_bench.peers.measuring import Cell
from muntin_bench.peers.questions import Question, Size
from muntin_bench.peers.sides import (
    BY_HAND,
    FLINK,
    FLINK_BATCH,
    ON_ONE_CORE,
    OURS,
    OURS_ON_SPARK,
    PARTIAL,
    SPARK,
    SPARK_UNION,
    Side,
)
from muntin_bench.report import Check, Plot, Section

_AHEAD = 10.0
# One query by so many keys takes at most so many times the best that is written by hand.
_KEYS, _BEHIND = 1_000_000, 1.2
_MANY = 256
_OUR_SIDES = (OURS, ON_ONE_CORE, OURS_ON_SPARK)
_STREAMERS = (SPARK, SPARK_UNION, FLINK, FLINK_BATCH)


class Found:
    """The cells of one question."""

    def __init__(self, question: Question, cells: Sequence[Cell]) -> None:
        self.question, self.cells = question, cells
        self._by = {(cell.side.name, cell.size.label): cell for cell in cells}
        self.sides = list({cell.side.name: cell.side for cell in cells}.values())

    def timing(self, side: Side, size: Size) -> Timing | None:
        """What a side took, as the tables show it."""
        cell = self._by.get((side.name, size.label))
        return None if cell is None else cell.timing

    def cell(self, side: Side, size: Size) -> str:
        """Seconds, their range, and the ratio to Muntin's local engine."""
        cell, base = self._by.get((side.name, size.label)), self.timing(OURS, size)
        if cell is None or cell.timing is None or base is None:
            return "–"
        ratio = cell.timing.median / base.median
        about = "≈ " if cell.factor > 1 else ""
        return f"{about}{_seconds(cell.timing)}, {_short(ratio)}×"


def table(found: Found) -> Section:
    """One row a side, one column a size."""
    sizes = found.question.sizes
    rows = tuple((side.name, *(found.cell(side, size) for size in sizes)) for side in found.sides)
    timed = tuple(
        tuple(
            cell.timing
            for cell in found.cells
            if cell.size == size and cell.timing is not None and cell.factor == 1
        )
        for size in sizes
    )
    about = sizes[0].data.about if len({size.data for size in sizes}) == 1 else "seed 0"
    columns = ("side", *(size.label for size in sizes))
    return Section(f"{found.question.title} ({about})", columns, rows, timed)


def cores(found: Found) -> Section:
    """Seconds of all cores together, which other work on the machine hardly changes."""
    sizes = found.question.sizes
    cells = {(cell.side.name, cell.size.label): cell for cell in found.cells}
    rows = tuple(
        (side.name, *(_cores(cells.get((side.name, size.label))) for size in sizes))
        for side in found.sides
    )
    columns = ("side", *(size.label for size in sizes))
    return Section(f"{found.question.name}: seconds of all cores together", columns, rows)


def _cores(cell: Cell | None) -> str:
    if cell is None or cell.timing is None or not cell.cpu:
        return "–"
    return f"{'≈ ' if cell.factor > 1 else ''}{cell.cpu:.2f}"


def left_out(found: Sequence[Found], missing: dict[str, str]) -> Section | None:
    """Which sides were not timed, and why."""
    rows = [(name, "all", reason) for name, reason in missing.items()]
    for each in found:
        rows += [
            (cell.side.name, f"{each.question.name}, {cell.size.label}", cell.reason)
            for cell in each.cells
            if cell.reason
        ]
    return Section("left out", ("side", "what", "why"), tuple(rows)) if rows else None


def ways(found: Sequence[Found]) -> Section:
    """How each side answered, and how much of a size was measured where it was not all."""
    seen: dict[tuple[str, str], list[str]] = {}
    for each in found:
        for cell in each.cells:
            if cell.how:
                part = f" (×{cell.factor:.3g})" if cell.factor > 1 else ""
                asked = f"{each.question.name} {cell.size.label}{part}"
                seen.setdefault((cell.side.name, cell.how), []).append(asked)
    rows = tuple((side, how, "; ".join(asked)) for (side, how), asked in seen.items())
    return Section("how each side answered", ("side", "how", "what (× a part)"), rows)


def promises(found: Sequence[Found]) -> Iterator[Check]:
    """Many queries ahead of every peer, one query not behind the best of Spark and Flink.

    One query by a million keys is near the best that is written by hand.
    """
    for each in found:
        size = _most(each.question)
        if each.question.name in ("windows", "predicates"):
            yield from _ahead(each, size)
        if each.question.name in ("slide", "windows"):
            single = [size for size in each.question.sizes if len(size.queries) == 1]
            for ours in _OUR_SIDES:
                yield from _not_behind(each, ours, single)
        if each.question.name == "groups":
            yield from _near(each)


def _most(question: Question) -> Size:
    within = [size for size in question.sizes if len(size.queries) <= _MANY]
    return within[-1]


def _ahead(found: Found, size: Size) -> Iterator[Check]:
    peers = [side for side in found.sides if side not in (*_OUR_SIDES, *PARTIAL)]
    for about, sides in (
        ("the nearest peer", [side for side in peers if side not in BY_HAND]),
        ("the nearest by hand", [side for side in peers if side in BY_HAND]),
    ):
        base = found.timing(OURS, size)
        ratios = {
            side.name: timing.over(base)
            for side in sides
            if base is not None and (timing := found.timing(side, size)) is not None
        }
        if ratios:
            nearest = min(ratios, key=lambda name: ratios[name].value)
            what = f"{found.question.name}, {size.label}: {about}, {nearest}, against Muntin"
            yield Check.of(what, _AHEAD, ratios[nearest], least=True)


def _not_behind(found: Found, ours: Side, sizes: Sequence[Size]) -> Iterator[Check]:
    ratios = {}
    for size in sizes:
        base = found.timing(ours, size)
        for side in _STREAMERS:
            timing = found.timing(side, size)
            if base is not None and timing is not None:
                ratios[side.name, size.label] = timing.over(base)
    if ratios:
        nearest = min(ratios, key=lambda key: ratios[key].value)
        about = f"{found.question.name}, one query, {nearest[0]} at {nearest[1]}"
        yield Check.of(f"{about} against {ours.name}", 1.0, ratios[nearest], least=True)


def _near(found: Found) -> Iterator[Check]:
    for size in found.question.sizes:
        base = found.timing(OURS, size)
        timed = [timing for side in BY_HAND if (timing := found.timing(side, size)) is not None]
        if size.at == _KEYS and base is not None and timed:
            best = min(timed, key=lambda timing: timing.median)
            what = f"{found.question.name}, {size.label}: Muntin against the best, {best.side}"
            yield Check.of(what, _BEHIND, base.over(best))


def plot(found: Found) -> Plot:
    """Seconds over sizes, a line per side."""
    lines = {}
    for side in found.sides:
        points = tuple(
            (float(size.at), timing.median)
            for size in found.question.sizes
            if (timing := found.timing(side, size)) is not None
        )
        if points:
            lines[side.name] = points
    title = f"{found.question.title}: from Parquet to answers"
    return Plot(found.question.name, title, found.question.across, "seconds", lines)


def _seconds(timing: Timing) -> str:
    low, middle, high = (
        f"{each * 1e3:,.0f}" for each in (min(timing.seconds), timing.median, max(timing.seconds))
    )
    return f"{middle} ms" + (f" ({low} to {high})" if low != high else "")


def _short(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2f}"
