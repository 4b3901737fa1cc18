"""Queries that join and leave a running stream: what is kept, and where a newcomer starts."""

from __future__ import annotations

from dataclasses import dataclass

from muntin.engine.store import BEGINNING, SliceStore
from muntin.plan.nodes import Final, Partials, SharedPlan, Slicing
from muntin.plan.timeline import Timeline
from muntin.windows import EdgeClass

Axis = tuple[str, Timeline]


@dataclass(frozen=True)
class OldCut:
    """Edge classes that rows up to the tick ``until`` were cut by, before the plan changed."""

    axis: Axis
    until: int
    classes: tuple[EdgeClass, ...]


def axis_of(slicing: Slicing) -> Axis:
    """What a slicing cuts."""
    return slicing.measure, slicing.timeline


def carry_stores(
    old: SharedPlan, stores: list[SliceStore], new: SharedPlan, since: int
) -> list[SliceStore]:
    """Stores for a new plan: those of nodes that stay keep their slices."""
    kept = {_identity(old, store.node): store for store in stores}
    result = []
    for node in new.partials:
        store = kept.get(_identity(new, node))
        result.append(SliceStore(node, since) if store is None else store.adapted(node, since))
    return result


def carry_cuts(
    old: SharedPlan, cuts: list[OldCut], new: SharedPlan, seen: int, stores: list[SliceStore]
) -> list[OldCut]:
    """The cuts of slices that are still kept, the one that ends now among them."""
    now = {axis_of(slicing): slicing.classes for slicing in new.slicings}
    ending = [
        OldCut(axis_of(slicing), seen, slicing.classes)
        for slicing in old.slicings
        if now.get(axis_of(slicing)) != slicing.classes
    ]
    oldest = min((store.evicted for store in stores), default=BEGINNING)
    return [cut for cut in (*cuts, *ending) if cut.until >= oldest]


def first_window(
    final: Final, axis: Axis, store: SliceStore, cuts: list[OldCut], watermark: int | None
) -> int:
    """The number of the first window that a query which joins now answers.

    All its rows must have been kept, in slices that its bounds do not cut through, and it must
    not be over: a window is answered when the watermark reaches its end, not later.
    """
    indices = {0} | {index for lowering in final.lowerings for index in lowering.accumulators}
    start = max(store.evicted, *(store.complete[index] for index in indices))
    for cut in cuts:
        if cut.axis == axis and not _cuts_fit(final, cut):
            start = max(start, cut.until + 1)
    window = final.window
    first = -((window.phase - window.range - start) // window.period)
    if watermark is not None:
        first = max(first, (watermark - window.phase) // window.period + 1)
    return first


def _cuts_fit(final: Final, cut: OldCut) -> bool:
    """Whether every bound of the query's windows was an edge of an old cut."""
    return all(
        any(period % old == 0 and phase % old == place for old, place in cut.classes)
        for period, phase in final.window.edge_classes()
    )


def _identity(plan: SharedPlan, node: Partials) -> tuple[object, ...]:
    return axis_of(plan.slicings[node.slicing]), node.grouping, node.predicate
