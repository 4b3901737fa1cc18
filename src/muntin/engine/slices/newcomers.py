"""Queries that join and leave a running stream: what is kept, and where a newcomer starts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from muntin.engine.slices.recoding import recoded
from muntin.engine.slices.store import SliceStore
from muntin.errors import WindowError
from muntin.plan.nodes import Final, Partials, SharedPlan
from muntin.windows import EdgeClass


@dataclass(frozen=True)
class OldCut:
    """Edge classes that rows of some partials were cut by up to a tick, before the plan changed.

    ``number`` is that of the partials, ``until`` the tick.
    """

    number: int
    until: int
    classes: tuple[EdgeClass, ...]


def carry_stores(stores: list[SliceStore], new: SharedPlan, since: int) -> list[SliceStore]:
    """Stores for a new plan: those of partials that stay keep their slices.

    No row has come at ``since`` or later, so nothing there has been forgotten yet.
    """
    kept = {store.node.number: store for store in stores}
    result = []
    for node in new.partials:
        store = kept.get(node.number if node.origin is None else node.origin)
        if store is None:
            carried = SliceStore(node, since)
        elif node.origin is None and _same_entries(store.node, node):
            carried = store.carried(node)
        else:
            carried = recoded(store, node, since)
        carried.evicted = min(carried.evicted, since)
        result.append(carried)
    return result


def _same_entries(old: Partials, new: Partials) -> bool:
    """Whether what is kept for one set of partials is what is kept for another."""
    same = old.accumulators == new.accumulators and old.selection == new.selection
    return same and old.grouping == new.grouping


def carry_cuts(
    old: SharedPlan, cuts: list[OldCut], new: SharedPlan, seen: int, stores: list[SliceStore]
) -> list[OldCut]:
    """The cuts of slices that are still kept, the one that ends now among them."""
    before = {node.number: old.slicings[node.slicing].classes for node in old.partials}
    found: list[OldCut] = []
    for node, store in zip(new.partials, stores, strict=True):
        number = node.number if node.origin is None else node.origin
        mine = [cut for cut in cuts if cut.number == number]
        classes = before.get(number)
        if classes is not None and classes != new.slicings[node.slicing].classes:
            mine.append(OldCut(number, seen, classes))
        found += [replace(cut, number=node.number) for cut in mine if cut.until >= store.evicted]
    return found


def first_window(final: Final, store: SliceStore, cuts: list[OldCut], watermark: int | None) -> int:
    """The number of the first window that a query which joins now answers.

    All its rows must have been kept, in slices that its bounds do not cut through, and it must
    not be over: a window is answered when the watermark reaches its end, not later.
    """
    indices = {0} | {index for lowering in final.lowerings for index in lowering.accumulators}
    members = {final.member} | {lowering.member for lowering in final.lowerings}
    start = max(
        store.evicted,
        *(store.complete[index] for index in indices),
        *(store.covered[member] for member in members),
    )
    for cut in cuts:
        if cut.number == store.node.number and not _cuts_fit(final, cut):
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


def check_streams(plan: SharedPlan) -> None:
    """Refuse windows that the progress of event time does not close, and slices it cannot."""
    if plan.slicing == "cutty":
        raise WindowError(
            "Cutty slices are cut where windows start only, and a window that ends inside one is "
            "read at that very moment: in a stream rows may still come that belong before it",
            hint='use slicing="pairs", which cuts where windows end as well; '
            "cutty is for bounded data in the local engine",
        )
    for slicing in plan.slicings:
        if slicing.measure == "rows" or slicing.timeline != plan.timeline:
            what = "ROWS" if slicing.measure == "rows" else f"WATTR {slicing.timeline.column}"
            raise WindowError(
                f"{what} windows are answered over bounded data only",
                hint=f"use a RANGE of {plan.timeline.column}, or collect the rows first",
            )
    for final in plan.finals:
        if not final.commutative:
            raise WindowError(
                f"query {final.name} has an aggregate that depends on the order of rows, which a "
                "stream does not keep",
                hint="aggregate the rows once they are collected, or order them by time in it",
            )
