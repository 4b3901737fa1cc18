"""What it costs to keep slices of a stream to be asked, and to ask while it runs.

A keep of an hour by a second stands beside 64 grouped queries; streams are fed with and without it
in turns, in this process and on Spark. Then questions of 20 shapes come at a steady rate while a
stream runs at full speed, and the same questions go to DuckDB over the raw rows; answers of both
are compared.
"""

from __future__ import annotations

from dataclasses import dataclass

from muntin_bench.ask.local import LOCAL_FULL, LOCAL_QUICK, LocalScale, local_sections
from muntin_bench.ask.spark import SPARK_FULL, SPARK_QUICK, SparkScale, spark_sections
from muntin_bench.ask.workload import RATE, SEED, SHAPES, SYMBOLS
from muntin_bench.conditions import JAVA
from muntin_bench.report import Check, Report, Section
from muntin_bench.streaming.checkpoints import spark


@dataclass(frozen=True)
class Scale:
    """How much to measure; None leaves a side out."""

    local: LocalScale | None
    spark: SparkScale | None


FULL = Scale(LOCAL_FULL, SPARK_FULL)
QUICK = Scale(LOCAL_QUICK, SPARK_QUICK)


def run(quick: bool = False, part: str | None = None) -> Report:
    """Both sides, or one of them."""
    scale = QUICK if quick else FULL
    if part is not None:
        local, on_spark = part == "local", part == "spark"
        scale = Scale(scale.local if local else None, scale.spark if on_spark else None)
    return run_at(scale)


def run_at(scale: Scale) -> Report:
    """Measure as much as the scale says."""
    sections: list[Section] = []
    checks: list[Check] = []
    if scale.local is not None:
        found, promised = local_sections(scale.local)
        sections += found
        checks += promised
    if scale.spark is not None:
        with spark(wanted=True) as session:
            found, promised = spark_sections(session, scale.spark)
        sections += found
        checks += promised
    text = (
        f"seeded trades of {SYMBOLS} symbols, {RATE} per second of event time; questions of "
        f"{SHAPES} shapes, one in ten of all symbols"
    )
    uses = ("duckdb",) if scale.spark is None else ("duckdb", "pyspark", JAVA)
    return Report(
        "ask", text, sections=tuple(sections), checks=tuple(checks), seeds=(SEED,), uses=uses
    )
