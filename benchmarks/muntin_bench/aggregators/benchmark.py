"""All techniques side by side: rates, operations, single steps, memory, and promises."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from muntin_bench.aggregators.latency import Latency, latencies
from muntin_bench.aggregators.promises import against_running_sum, many_ranges
from muntin_bench.aggregators.rates import Rate, rates
from muntin_bench.aggregators.work import check_answers, workloads
from muntin_bench.progress import step
from muntin_bench.report import Plot, Report, Section

_AGGREGATES = ("sum", "max")
_COLUMNS = 6


@dataclass(frozen=True)
class Scale:
    """How much to measure: windows are powers of two, a budget is in seconds a technique."""

    windows: tuple[int, ...] = tuple(range(0, 23, 2))
    rate_budget: float = 0.1
    latency_budget: float = 0.15
    checked: tuple[int, ...] = (1, 5, 64)
    running: int = 1 << 20
    ranges: tuple[int, ...] = (1, 4, 16, 64, 256, 1024)
    answers: int = 1 << 20


FULL = Scale()
QUICK = Scale((0, 4, 8, 12, 16, 20), 0.03, 0.05, (1, 5, 64), ranges=(1, 16, 256))


def run(quick: bool = False) -> Report:
    """Check the answers of all techniques, then time them."""
    return run_at(QUICK if quick else FULL)


def run_at(scale: Scale) -> Report:
    """Measure as much as the scale says."""
    step("comparing answers")
    works = workloads()
    compared = check_answers(works, scale.checked)
    windows = [1 << power for power in scale.windows]
    sections: list[Section] = []
    plots: list[Plot] = []
    for name in _AGGREGATES:
        step(f"{name}, windows up to {_power(windows[-1])}, rates")
        fast = list(rates(works[name], windows, scale.rate_budget))
        step(f"{name}, single steps")
        slow = list(latencies(works[name], windows, scale.latency_budget))
        sections += [*rate_tables(name, fast), latency_table(name, slow)]
        plots += [_rate_plot(name, fast), _latency_plot(name, slow)]
    step("against a running sum, and many ranges")
    running, checks = against_running_sum(works, scale.running)
    ranges = many_ranges(works["sum"], scale.ranges, scale.answers)
    return Report(
        "aggregators",
        f"seeded values; {compared:,} answers equal recomputation",
        sections=(*sections, running, ranges),
        checks=tuple(checks),
        plots=tuple(plots),
        seeds=(0,),
    )


def rate_tables(name: str, found: Sequence[Rate]) -> list[Section]:
    """Tables of a measure: one row a technique, one column a window, few enough for a terminal."""
    every = list(dict.fromkeys(rate.window for rate in found))
    measures = (
        ("million steps per second, median", lambda rate: _short(rate.per_second / 1e6)),
        ("slowest over fastest run", lambda rate: f"{rate.slower:.2f}×"),
        ("operations per step", lambda rate: _short(rate.operations)),
        ("bytes per partial of the window", lambda rate: _short(rate.bytes_per_partial)),
        ("steps timed", lambda rate: _short(rate.steps)),
    )
    return [
        Section(
            f"{name}, {title}",
            ("window", *map(_power, every[start : start + _COLUMNS])),
            _pivot(found, every[start : start + _COLUMNS], show),
        )
        for title, show in measures
        for start in range(0, len(every), _COLUMNS)
    ]


def _pivot(found: Sequence[Rate], windows: list[int], show: object) -> tuple[tuple[str, ...], ...]:
    cells = {(rate.technique, rate.window): show(rate) for rate in found}  # type: ignore[operator]
    names = dict.fromkeys(rate.technique for rate in found)
    return tuple((name, *(cells[name, window] for window in windows)) for name in names)


def latency_table(name: str, found: Sequence[Latency]) -> Section:
    """Percentiles of single steps, for a few of the windows."""
    rows = [
        (
            latency.technique,
            _power(latency.window),
            *(f"{nanoseconds:,.0f}" for nanoseconds in latency.nanoseconds),
            _short(latency.steps),
        )
        for latency in found
    ]
    columns = ("technique", "window", "p50 ns", "p99 ns", "p99.99 ns", "max ns", "steps")
    return Section(f"{name}, single steps", columns, tuple(rows))


def _rate_plot(name: str, found: Iterable[Rate]) -> Plot:
    lines: dict[str, tuple[tuple[float, float], ...]] = {}
    for rate in found:
        points = lines.get(rate.technique, ())
        lines[rate.technique] = (*points, (rate.window, rate.per_second))
    return Plot(f"{name}-rate", f"{name}: steps per second", "window", "steps per second", lines)


def _latency_plot(name: str, found: Iterable[Latency]) -> Plot:
    lines: dict[str, tuple[tuple[float, float], ...]] = {}
    for latency in found:
        points = lines.get(latency.technique, ())
        lines[latency.technique] = (*points, (latency.window, latency.nanoseconds[2]))
    return Plot(f"{name}-latency", f"{name}: p99.99 of single steps", "window", "ns", lines)


def _power(window: int) -> str:
    return f"2^{window.bit_length() - 1}"


def _short(value: float) -> str:
    """Three digits, with a unit for thousands and millions."""
    for factor, unit in ((1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:.3g}{unit}"
    return f"{value:.3g}"
