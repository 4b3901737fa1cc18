"""One rendered model of a plan, from which every printer draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from muntin.display import count
from muntin.plan.explain.costs import HOUR, PLAIN, Costs, EdgeRate, edge_rate
from muntin.plan.explain.model import Fact, Item, amount, names, times_fewer
from muntin.plan.explain.partials import (
    PartialsItems,
    combined_label,
    moves_facts,
    slices_label,
    slicing_column,
)
from muntin.plan.nodes import SharedPlan, Slicing

__all__ = ["SHOWN", "Fact", "Item", "render"]

# About so many queries are shown one by one to people; more are summed up with counts.
SHOWN = 48


def render(
    plan: SharedPlan,
    *,
    rate: float | None = None,
    notes: Mapping[int, Sequence[str]] | None = None,
    most: int | None = None,
) -> Item:
    """The whole plan as a tree of items; ids and order do not change from run to run.

    Args:
        plan: What to show.
        rate: Rows per second, if known: operations per second are then estimated.
        notes: Sentences to attach to sets of partials, by their number.
        most: About how many queries to show one by one; all if not given.
    """
    costs = Costs(plan, rate)
    slicings = len(plan.slicings) if most is None else min(len(plan.slicings), max(most // 4, 1))
    shown = len(plan.partials) if most is None else min(len(plan.partials), max(most // 2, 1))
    each = None if most is None else max(most // max(shown, 1), 3)
    items = PartialsItems(costs, notes or {}, each)
    partials = [items.item(place, _sources(plan, place, slicings, shown)) for place in range(shown)]
    cut = [_slicing(costs, place) for place in range(slicings)]
    combined = [_combined(costs, place) for place in range(len(plan.combined))]
    return Item(
        "plan",
        "plan",
        "SharedPlan",
        _summary(costs),
        children=(
            *cut,
            *_more_slicings(plan, slicings),
            *combined,
            *partials,
            *_more_partials(costs, shown, slicings),
        ),
    )


def _sources(plan: SharedPlan, place: int, slicings: int, shown: int) -> tuple[str, ...]:
    node = plan.partials[place]
    cut = f"slicing-{node.slicing + 1}" if node.slicing < slicings else "slicings-more"
    if node.combined is not None:
        return cut, f"slicing-combined-{node.combined + 1}"
    feeder = node.finer if node.twin is None else node.twin
    if feeder is None:
        return (cut,)
    return cut, f"partials-{feeder + 1}" if feeder < shown else "partials-more"


def _summary(costs: Costs) -> tuple[Fact, ...]:
    plan = costs.plan
    queries, sets = len(plan.finals), len(plan.partials)
    shared, alone = costs.accumulators
    saved = f"{shared:,} accumulators instead of {alone:,}, {times_fewer(shared or 1, alone or 1)}"
    return (
        Fact("strategy", plan.strategy),
        Fact("slicing", plan.slicing),
        Fact("queries", queries, f"{count(queries, 'query')} → {count(sets, 'set')} of partials"),
        Fact("sets_of_partials", sets),
        Fact("accumulators_shared", shared, "nothing to share" if alone == shared else saved),
        Fact("accumulators_unshared", alone),
        *_saving(costs),
        *_operations(costs),
        *_zone(plan),
        *_placement(plan),
        Fact("why", plan.why or None, "" if _is_told(plan) else plan.why, aside=True),
        *moves_facts(plan),
    )


def _zone(plan: SharedPlan) -> tuple[Fact, ...]:
    """Where local times are, unless they are those of UTC."""
    name = plan.zone.name
    return () if plan.zone.is_utc else (Fact("timezone", name, f"local times of {name}"),)


def _placement(plan: SharedPlan) -> tuple[Fact, ...]:
    """Who has placed trees without groups on buckets, where there are some."""
    if not plan.placement or all(node.grouping for node in plan.partials):
        return ()
    text = f"sets of partials without groups are placed in buckets by {plan.placement}"
    return (Fact("placement", plan.placement, text, aside=True),)


def _is_told(plan: SharedPlan) -> bool:
    """Whether the last move tells why queries share as they do."""
    return bool(plan.moves) and plan.moves[-1].why == plan.why


def _saving(costs: Costs) -> tuple[Fact, ...]:
    """What the plan does for each row and edge, beside its queries alone."""
    queries, fed = len(costs.plan.finals), costs.fed
    rolled = sum(node.finer is not None for node in costs.plan.partials)
    rows = f"a row goes into {count(fed, 'set of partials')} instead of {queries:,}"
    put = sum(node.combined is not None for node in costs.plan.partials)
    if put:
        rows += f"; {count(put, 'set')} more {'is' if put == 1 else 'are'} put together from these"
    if rolled:
        rows += f"; {count(rolled, 'set')} more {'is' if rolled == 1 else 'are'} rolled up"
    edges, own = costs.edges_per_hour()
    noun = "slice" if amount(edges) == "1" else "slices"
    cut = f"all sets of partials cut {amount(edges)} {noun} an hour"
    ends = f"{cut}, the queries alone {amount(own)}"
    return (
        Fact("updates_per_row_shared", fed, rows if queries > 1 else "", aside=True),
        Fact("updates_per_row_unshared", queries),
        Fact("edges_per_hour_shared", edges, ends if own and queries > 1 else "", aside=True),
        Fact("edges_per_hour_unshared", own),
    )


def _operations(costs: Costs) -> tuple[Fact, ...]:
    if costs.rate is None:
        return (Fact("rows_per_second", None),)
    rate = float(costs.rate)
    left_out = ", ".join(costs.without_seconds())
    found = costs.operations()
    if found is None:
        text = f"operations per second are not known: {left_out} is not a time" if left_out else ""
        return (Fact("rows_per_second", rate, text, aside=True),)
    shared, alone = found
    text = (
        f"at {amount(rate)} rows/s about {amount(shared)} operations/s instead of "
        f"{amount(alone)}, {times_fewer(shared, alone)} (estimated"
    )
    text += f"; what is cut by {left_out} left out)" if left_out else ")"
    return (
        Fact("rows_per_second", rate),
        Fact("operations_per_second_shared", shared, text, aside=True),
        Fact("operations_per_second_unshared", alone),
    )


def _slicing(costs: Costs, place: int) -> Item:
    slicing, edges = costs.plan.slicings[place], costs.edges[place]
    queries = costs.cut_for[place]
    return Item(
        f"slicing-{place + 1}",
        "slicing",
        f"{slices_label(costs.plan, place)} of {slicing_column(slicing)}",
        (
            *_cut_facts(slicing, edges),
            *_marks(slicing),
            Fact("queries", queries, f"cut for {names(queries)}", aside=True),
        ),
        sources=("plan",),
    )


def _combined(costs: Costs, place: int) -> Item:
    """Slices that rows are aggregated in once, and that those of trees are put together from."""
    slicing, plan = costs.plan.combined[place].slicing, costs.plan
    fed = [node for node in plan.partials if node.combined == place]
    trees = tuple(f"slicing-{each + 1}" for each in sorted({node.slicing for node in fed}))
    return Item(
        f"slicing-combined-{place + 1}",
        "slicing",
        f"{combined_label(plan, place)} of {slicing_column(slicing)}",
        (
            *_cut_facts(slicing, costs.combined[place]),
            Fact("feeds", trees, f"feed {count(len(trees), 'tree')}"),
        ),
        sources=("plan",),
    )


def _marks(slicing: Slicing) -> tuple[Fact, ...]:
    """Window ends inside Cutty slices."""
    if not slicing.marks:
        return ()
    number, shown, _ = _per(slicing, edge_rate(slicing.marks))
    text = f"{number} window {'end' if number == '1' else 'ends'}/{shown} inside slices"
    return (Fact("ends_inside", len(slicing.marks), text),)


def _per(slicing: Slicing, edges: EdgeRate) -> tuple[str, str, str]:
    """How many edges there are, and in what, for people and for machines."""
    rows = slicing.measure == "rows"
    timed = not rows and not slicing.timeline.plain
    per = "hour" if timed else f"{PLAIN} {'rows' if rows else 'units'}"
    number = amount(edges.rate * (HOUR if timed else PLAIN))
    shown = "h" if timed else f"{PLAIN:,} {per.split()[1]}"
    return f"{'' if edges.exact else 'about '}{number}", shown, per


def _cut_facts(slicing: Slicing, edges: EdgeRate) -> tuple[Fact, ...]:
    """What is cut, by how many windows, and how often."""
    number, shown, per = _per(slicing, edges)
    told = f"{number} {'edge' if number == '1' else 'edges'}/{shown}"
    windows = len(slicing.windows)
    return (
        Fact("column", slicing.timeline.column),
        Fact("measure", slicing.measure),
        Fact("owner", slicing.owner or None),
        Fact("windows", windows, f"{count(windows, 'window')} → {told}"),
        Fact("edges", float(edges.rate * (HOUR if per == "hour" else PLAIN))),
        Fact("edges_per", per),
        Fact("exact", edges.exact),
        Fact("edge_classes", len(slicing.classes)),
    )


def _more_slicings(plan: SharedPlan, shown: int) -> tuple[Item, ...]:
    left = len(plan.slicings) - shown
    if not left:
        return ()
    windows = sum(len(slicing.windows) for slicing in plan.slicings[shown:])
    facts = (Fact("windows", windows, f"of {count(windows, 'window')}"),)
    label = f"and {left:,} more {'slicing' if left == 1 else 'slicings'}"
    return (Item("slicings-more", "more", label, facts, sources=("plan",)),)


def _more_partials(costs: Costs, shown: int, slicings: int) -> tuple[Item, ...]:
    plan = costs.plan
    left = plan.partials[shown:]
    if not left:
        return ()
    queries = sum(len(served) for served in costs.finals[shown:])
    accumulators = sum(len(node.accumulators) for node in left)
    cut = (
        f"slicing-{node.slicing + 1}" if node.slicing < slicings else "slicings-more"
        for node in left
    )
    facts = (
        Fact("queries", queries, f"serve {count(queries, 'query')}"),
        Fact("accumulators", accumulators, f"keep {count(accumulators, 'accumulator')}"),
    )
    label = f"and {len(left):,} more {'set' if len(left) == 1 else 'sets'} of partials"
    return (Item("partials-more", "more", label, facts, sources=tuple(dict.fromkeys(cut))),)
