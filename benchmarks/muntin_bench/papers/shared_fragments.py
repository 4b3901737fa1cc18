"""When sharing fragments pays: Figure 10, with the numbers that the rows themselves give.

Section 4.3.3 of "On-the-Fly Sharing for Streamed Aggregation". In ten minutes |T| rows satisfy
alpha predicates each, and make k fragments that satisfy beta each: alpha |T| aggregations without
sharing, |T| + k beta with it. The paper takes beta for alpha; here both are counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from muntin_bench.papers.claims import Claim, Part, near
from muntin_bench.report import Plot, Section

TUPLES, CARDINALITY, FRAGMENTS = 189_445, 76, 12_068
_PERIOD = 600 * 1_000_000


@dataclass(frozen=True)
class Fragments:
    """|T|, k, alpha and beta of ten minutes."""

    tuples: float
    count: float
    alpha: float
    beta: float

    @property
    def unshared(self) -> float:
        """Aggregations without sharing."""
        return self.alpha * self.tuples

    @property
    def shared(self) -> float:
        """Aggregations with sharing."""
        return self.tuples + self.count * self.beta

    @property
    def even(self) -> float:
        """The number of fragments from which on sharing costs more."""
        return self.tuples * (self.alpha - 1) / self.beta


PAPER = Fragments(TUPLES, FRAGMENTS, CARDINALITY, CARDINALITY)


def counted(workload: Any, columns: Any) -> list[Fragments]:
    """What the rows of each ten minutes give; rows that satisfy nothing are left out."""
    # A signature is told by the sum of random numbers drawn for its predicates.
    random = np.random.default_rng(0)
    signatures = np.zeros(len(columns["ts"]), np.uint64)
    satisfied = np.zeros(len(columns["ts"]), np.int64)
    for query in workload.queries:
        held = query.predicate.holds(columns)
        signatures += held * random.integers(1, 1 << 64, dtype=np.uint64)
        satisfied += held
    found = []
    periods = np.where(satisfied > 0, columns["ts"] // _PERIOD, -1)
    for period in np.unique(periods[periods >= 0]):
        own = periods == period
        _, first = np.unique(signatures[own], return_index=True)
        cardinalities = satisfied[own]
        found.append(
            Fragments(
                float(own.sum()),
                float(first.size),
                float(cardinalities.mean()),
                float(cardinalities[first].mean()),
            )
        )
    return found


def figure_10(rows: int, queries: int) -> Part:
    """The paper's numbers, those of a synthetic hour, and what the engine did for it."""
    from muntin_bench.sharing.data import SYMBOLS, hour  # noqa: PLC0415
    from muntin_bench.sharing.engine import prepare  # noqa: PLC0415
    from muntin_bench.sharing.rows import columns_of  # noqa: PLC0415
    from muntin_bench.sharing.workloads import workload  # noqa: PLC0415

    market, work = hour(rows, min(SYMBOLS, rows)), workload("B", queries)
    periods = counted(work, columns_of(market))
    _, progress = prepare(market, work, "fragments").run()
    done = progress.aggregations
    here = _average(periods)
    engine = sum(each.unshared for each in periods) / done
    lines = tuple(
        (name, *(f"{value:,.4g}" for value in (theirs, ours)))
        for name, theirs, ours in (
            ("rows in ten minutes, |T|", PAPER.tuples, here.tuples),
            ("fragments among them, k", PAPER.count, here.count),
            ("predicates that a row satisfies, alpha", PAPER.alpha, here.alpha),
            ("predicates that a fragment satisfies, beta", PAPER.beta, here.beta),
            ("aggregations, unshared", PAPER.unshared, here.unshared),
            ("aggregations, shared", PAPER.shared, here.shared),
            ("fragments from which on sharing costs more", PAPER.even, here.even),
        )
    )
    section = Section(
        f"Figure 10: {queries} queries of workload B over {market.about}",
        ("ten minutes, on average", "paper", "here"),
        lines,
    )
    return Part((section,), _claims(here, engine), (_plot(),))


def _average(periods: Sequence[Fragments]) -> Fragments:
    return Fragments(
        fmean(each.tuples for each in periods),
        fmean(each.count for each in periods),
        fmean(each.alpha for each in periods),
        fmean(each.beta for each in periods),
    )


def _claims(here: Fragments, engine: float) -> tuple[Claim, ...]:
    gain = PAPER.unshared / PAPER.shared
    return (
        near("Figure 10", "fragments a row", FRAGMENTS / TUPLES, here.count / here.tuples, 1.5),
        near(
            "Figure 10", "beta / alpha, which the paper sets to 1", 1, here.beta / here.alpha, 1.5
        ),
        near(
            "Figure 10",
            "times fewer aggregations, by formula",
            gain,
            here.unshared / here.shared,
            1.5,
        ),
        near("Figure 10", "times fewer aggregations, by the engine's count", gain, engine, 1.5),
    )


def _plot() -> Plot:
    counts = [2.0**power for power in range(18)]
    return Plot(
        "figure-10",
        "Figure 10: aggregations in ten minutes, the paper's numbers",
        "fragments",
        "aggregations",
        {
            "unshared": tuple((count, PAPER.unshared) for count in counts),
            "shared": tuple((count, TUPLES + count * CARDINALITY) for count in counts),
        },
    )
