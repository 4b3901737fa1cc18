"""One rendered model of a plan, from which every printer draws."""

from __future__ import annotations

from dataclasses import dataclass

from muntin.plan.nodes import Accumulator, Final, Partials, SharedPlan, Slicing
from muntin.windows import Window, duration_text
from muntin.windows.edges import edges_between

_HOUR = 3_600_000_000
_PLAIN = 1_000
_SHOWN_NAMES = 6
# Counting more edges than this would take longer than reading the plan.
_COUNTED_EDGES = 1_000_000


@dataclass(frozen=True)
class Item:
    """One line of a rendered plan: what it is, facts about it, and what stands below it."""

    label: str
    facts: tuple[str, ...] = ()
    children: tuple[Item, ...] = ()


def render(plan: SharedPlan) -> Item:
    """The whole plan as a tree of items; ids and order do not change from run to run."""
    slicings = tuple(_slicing(slicing) for slicing in plan.slicings)
    partials = tuple(
        _partials(plan, index, node) for index, node in enumerate(plan.partials, start=1)
    )
    summary = (
        f"{_count(len(plan.finals), 'query')} → {_count(len(plan.partials), 'set')} of partials"
    )
    return Item("SharedPlan", (summary, _saving(plan)), slicings + partials)


def _saving(plan: SharedPlan) -> str:
    """How many accumulators a row updates, against one pass per query."""
    shared = sum(len(node.accumulators) for node in plan.partials if node.finer is None)
    alone = sum(len(_used(plan, final)) for final in plan.finals)
    if alone == shared:
        return "nothing to share"
    return f"{shared} accumulators instead of {alone}, {alone / shared:.1f}× fewer"


def _used(plan: SharedPlan, final: Final) -> list[Accumulator]:
    """The accumulators a query needs, the count of rows among them."""
    indices = {0} | {index for lowering in final.lowerings for index in lowering.accumulators}
    return [plan.partials[final.partials].accumulators[index] for index in sorted(indices)]


def _slicing(slicing: Slicing) -> Item:
    what = "rows" if slicing.measure == "rows" else slicing.timeline.column
    return Item(
        f"slices of {what}",
        (f"{_count(len(slicing.windows), 'window')} → {_edge_rate(slicing)}",),
    )


def _edge_rate(slicing: Slicing) -> str:
    timed = slicing.measure == "time" and not slicing.timeline.plain
    period = _HOUR if timed else _PLAIN
    if sum(period / each for each, _ in slicing.classes) > _COUNTED_EDGES:
        return f"{_count(len(slicing.classes), 'edge class')}"
    edges = len(edges_between(slicing.classes, 0, period))
    per = "h" if timed else f"{_PLAIN:,} {'rows' if slicing.measure == 'rows' else 'units'}"
    return f"{edges:,} {'edge' if edges == 1 else 'edges'}/{per}"


def _partials(plan: SharedPlan, number: int, node: Partials) -> Item:
    finals = [final for final in plan.finals if final.partials == number - 1]
    facts = []
    if node.grouping:
        facts.append("by " + ", ".join(bound.key for bound in node.grouping))
    if node.finer is not None:
        facts.append(f"rolled up from partials {node.finer + 1}")
    if relation := plan.relations[node.relation].joins:
        facts.append("joined with " + ", ".join(join.table for join in relation))
    alike = {final.predicate for final in finals}
    if len(alike) > 1:
        facts.append(str(node.selection))
    elif finals and finals[0].predicate is not None:
        facts.append(f"where {finals[0].predicate.key}")
    return Item(
        f"partials {number}",
        tuple(facts),
        _accumulators(plan, node, number - 1)
        + tuple(_final(final, len(alike) > 1) for final in finals),
    )


def _accumulators(plan: SharedPlan, node: Partials, place: int) -> tuple[Item, ...]:
    """One item for all accumulators that serve the same queries."""
    fed = {place} | {i for i, each in enumerate(plan.partials) if each.finer == place}
    used = {final.name: set(_used(plan, final)) for final in plan.finals if final.partials in fed}
    serving: dict[tuple[str, ...], list[str]] = {}
    for accumulator in node.accumulators:
        served = tuple(name for name, needed in used.items() if accumulator in needed)
        serving.setdefault(served, []).append(str(accumulator))
    return tuple(
        Item(", ".join(accumulators), (f"serve {_names(names)}",))
        for names, accumulators in serving.items()
    )


def _names(names: tuple[str, ...]) -> str:
    shown = " ".join(names[:_SHOWN_NAMES])
    more = len(names) - _SHOWN_NAMES
    return shown if more <= 0 else f"{shown} and {more:,} more"


def _final(final: Final, predicate: bool) -> Item:
    facts = [_window(final.window)]
    if predicate and final.predicate is not None:
        facts.append(f"where {final.predicate.key}")
    outputs = ", ".join(output.name for output in final.outputs)
    return Item(f"final {final.name}", (*facts, f"gives {outputs}"))


def _window(window: Window) -> str:
    def text(value: int) -> str:
        return duration_text(value) if window.unit == "duration" else f"{value:,}"

    rows = " rows" if window.measure == "rows" else ""
    parts = [f"range {text(window.range)}{rows}", f"slide {text(window.period)}{rows}"]
    if window.phase:
        parts.append(f"ends at {text(window.phase)} past")
    return " ".join(parts)


def _count(number: int, noun: str) -> str:
    plural = {"query": "queries", "edge class": "edge classes"}.get(noun, f"{noun}s")
    return f"{number} {noun if number == 1 else plural}"
