"""Benchmarks by name: run one, or say in its report why it failed."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module

from muntin.errors import MuntinError, did_you_mean
from muntin_bench import progress
from muntin_bench.conditions import conditions
from muntin_bench.report import Report

# Each is a module with a function `run(quick)`, imported when asked for.
ABOUT = {
    "aggregators": "the final techniques: speed, operations, latency, bytes",
    "ask": "a keep beside queries, and questions meanwhile; DuckDB",
    "holistic": "distinct values, percentiles, top_k over many windows; peers",
    "joins": "aggregates over joins, beside engines that make the pairs",
    "local": "ten mixed queries in one call, against ten calls of polars",
    "operators": "joins, absence, distinct: against DuckDB and Spark's own streams",
    "optimizer": "what plans cost, how long planning takes, if estimates hold",
    "papers": "the papers' other figures and tables, with verdicts",
    "peers": "the same queries by other engines, which it installs first",
    "planning": "seconds to plan thousands of queries, and a cold start",
    "sharing": "hundreds of queries by strategy, beside DuckDB and polars",
    "spark": "one shared job, against window() queries one by one; streams",
    "streaming": "what a batch costs where much is kept; bytes of checkpoints",
}
NAMES = tuple(ABOUT)
# Long ones can be run part by part: `streaming-slides` is a benchmark as well, with a report of its
# own, and `run` of its module takes ``part``.
PARTS = {
    "ask": ("local", "spark"),
    "operators": (
        *("bounded", "constants", "join", "joins", "absence", "distinct"),
        *("long_join", "long_absence", "long_distinct", "long_except"),
    ),
    "streaming": (
        "slides",
        "alone",
        "ranges",
        "predicates",
        "checkpoints",
        "uncached",
        "groups",
        "carriers",
    ),
}
REPORTS = tuple(
    report
    for name in NAMES
    for report in (name, *(f"{name}-{part}" for part in PARTS.get(name, ())))
)
# Peers are installed into environments of their own first, so they have to be asked for.
ALL = tuple(name for name in NAMES if name != "peers")


def chosen(names: Sequence[str]) -> tuple[str, ...]:
    """The benchmarks that are asked for, each once; ``all`` is all but the peers.

    >>> chosen(["spark", "local", "spark"])
    ('spark', 'local')
    >>> chosen(["streaming-slides"])
    ('streaming-slides',)
    """
    found: dict[str, None] = {}
    for name in names:
        if name != "all" and name not in REPORTS:
            known = (*NAMES, "all")
            hint = did_you_mean(name, (*REPORTS, "all")) or f"there are {', '.join(known)}"
            raise MuntinError(f"there is no benchmark {name!r}", hint=hint)
        found.update(dict.fromkeys(ALL if name == "all" else (name,)))
    return tuple(found)


def run(name: str, *, quick: bool = False) -> Report:
    """Run one benchmark, in minutes if ``quick``; raises where answers differ."""
    (name,) = chosen([name])
    if not __debug__:
        raise MuntinError(
            "benchmarks compare answers by assert, which python -O leaves out",
            hint="run without -O and PYTHONOPTIMIZE",
        )
    begin = time.perf_counter()
    progress.begin(progress.Started(name, time.time()))
    try:
        whole, _, part = name.partition("-")
        runner: Callable[..., Report] = import_module(f"muntin_bench.{whole}").run
        report = runner(quick=quick, part=part) if part else runner(quick=quick)
        progress.step("done")
    finally:
        progress.begin(None)
    taken = time.perf_counter() - begin
    return replace(
        report, name=name, conditions=conditions(report.uses, quick=quick, seconds=taken)
    )


def attempt(name: str, *, quick: bool = False) -> Report:
    """Run one benchmark; if it fails, the report says why, and has no figures."""
    begin = time.perf_counter()
    try:
        return run(name, quick=quick)
    except Exception as error:
        told = traceback.format_exc()
        failure = str(error) if isinstance(error, MuntinError) else _last_line(error, told)
        under = conditions(quick=quick, seconds=time.perf_counter() - begin)
        return Report(name, "", failure=failure, conditions=under)


def _last_line(error: Exception, told: str) -> str:
    """The error first, then how it came about."""
    return f"{type(error).__name__}: {error}\n\n{told}"
