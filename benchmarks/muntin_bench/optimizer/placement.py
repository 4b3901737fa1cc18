"""The distributed optimizers over the parameters of the thesis's Table 8: Figure 40, Tables 9, 10.

Chapter 6 of "Algorithms and Optimizations for Incremental Window-Based Aggregations".
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from statistics import fmean, pstdev

from muntin.planner.placement.optimizers import METHODS
from muntin_bench.optimizer.outcomes import (
    Combination,
    Measure,
    Outcomes,
    gaps,
    outcomes,
    table_8,
    wins,
)
from muntin_bench.optimizer.readings import readings_section
from muntin_bench.report import Check, Section

# Table 9 of the thesis: best in so many cases, and so far behind in the others.
_THESIS: dict[Measure, dict[str, str]] = {
    "total": {"WG_TN": "90%, 0.2%", "WG_I": "5%, 9%"},
    "maximum": {"WG_TN": "17%, 48%", "WG_I": "80%, 3%"},
}
# Its Table 10, in seconds.
_THESIS_SECONDS = {
    "G_RAND": 0.01,
    "W_RAND": 2.31,
    "WG_RAND": 0.02,
    "G_RR": 0.01,
    "W_RR": 2.34,
    "WG_RR": 0.01,
    "G_TL": 0.01,
    "W_TL": 12.6,
    "WG_TL": 9.11,
    "W_TN": 2.95,
    "WG_TN": 2.83,
    "W_I": 5.68,
    "WG_I": 3.94,
}


def placement_sections(
    quick: int | None = None, seed: int = 0
) -> tuple[list[Section], list[Check]]:
    """Tables 9 and 10 and Figure 40, measured; with `quick`, over so many of the combinations."""
    every = table_8()
    chosen = every if quick is None else Random(seed).sample(every, quick)
    ours = outcomes(chosen, seed)
    merged = outcomes(chosen, seed, METHODS, merge=True)
    of = f"{len(chosen)} of the {len(every)} combinations of Table 8"
    thirteen = [{name: each[name] for name in METHODS} for each in ours]
    sections = [
        best_shares(f"Table 9, {of}", thirteen),
        best_shares("Table 9 with queries of equal edges merged first", merged),
        readings_section(chosen, thirteen, merged, seed),
        best_shares("with our local improvement among the methods", ours),
        wins_by_nodes("best in maximum cost, by number of nodes", chosen, thirteen),
        plan_quality(f"Figure 40, {of}: 0% is the best plan, 100% the worst", ours),
        runtimes(f"Table 10, {of}: mean seconds a plan", ours),
    ]
    promised = (
        ("WG_TN is best in total cost", 0.9, wins(thirteen, "total")["WG_TN"]),
        ("WG_I is best in maximum cost", 0.8, wins(thirteen, "maximum")["WG_I"]),
    )
    return sections, [
        Check(f"share of combinations where {promise}", limit, value, "", least=True)
        for promise, limit, value in promised
    ]


def best_shares(title: str, found: Outcomes) -> Section:
    """Who is best how often, and how far from the best otherwise, beside the thesis's Table 9."""
    rows = []
    every = {measure: gaps(found, measure) for measure in _THESIS}
    for name in found[0]:
        row = [name]
        for measure, thesis in _THESIS.items():
            behind = [gap for gap in every[measure][name] if gap > 0]
            row.append(f"{1 - len(behind) / len(found):.0%}")
            row.append(f"{fmean(behind):.1%}" if behind else "-")
            row.append(thesis.get(name, ""))
        rows.append(tuple(row))
    columns = [
        heading
        for measure in _THESIS
        for heading in (f"best in {measure} cost", "else behind by", "thesis")
    ]
    return Section(title, ("method", *columns), tuple(rows))


def wins_by_nodes(title: str, chosen: Sequence[Combination], found: Outcomes) -> Section:
    """How often each method is best in maximum cost: few nodes favour low totals, many balance."""
    counts = sorted({each.nodes for each in chosen})
    shares = [
        wins(
            [one for each, one in zip(chosen, found, strict=True) if each.nodes == count], "maximum"
        )
        for count in counts
    ]
    rows = tuple((name, *(f"{share[name]:.0%}" for share in shares)) for name in found[0])
    return Section(title, ("method", *(f"{count} nodes" for count in counts)), rows)


def plan_quality(title: str, found: Outcomes) -> Section:
    """Where each method lies between best and worst, mean and deviation over combinations."""
    rows = []
    for name in found[0]:
        row = [name]
        for measure in _THESIS:
            scores = []
            for each in found:
                costs = {key: getattr(outcome, measure) for key, outcome in each.items()}
                best, worst = min(costs.values()), max(costs.values())
                scores.append((costs[name] - best) / (worst - best) if worst > best else 0.0)
            row.append(f"{fmean(scores):.1%} ± {pstdev(scores):.1%}")
        rows.append(tuple(row))
    return Section(title, ("method", *(f"{measure} cost" for measure in _THESIS)), tuple(rows))


def runtimes(title: str, found: Outcomes) -> Section:
    """Seconds a plan takes, beside the thesis's Table 10."""
    rows = []
    for name in found[0]:
        seconds = fmean(each[name].seconds for each in found)
        thesis = _THESIS_SECONDS.get(name)
        rows.append((name, f"{seconds:.3f}", "" if thesis is None else f"{thesis:.2f}"))
    return Section(title, ("method", "ours", "thesis"), tuple(rows))
