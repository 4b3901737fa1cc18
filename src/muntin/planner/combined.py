"""Combined partials: rows go into one set of slices, and trees take theirs from there."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import replace

from muntin.plan.nodes import Combined, Partials, Slicing
from muntin.plan.selection import Cells, Mask, Selection
from muntin.planner.steps.cells import MOST_CELLS
from muntin.predicates import Ranked, Shape
from muntin.windows import reduce_classes

OWNER = "combined"


def combine(
    partials: Sequence[Partials], slicings: Sequence[Slicing], ordered: Collection[int]
) -> tuple[tuple[Partials, ...], tuple[Combined, ...]]:
    """Partials of several trees fed from combined ones, where these tell the same rows apart.

    That takes the same axis, rows, groups and dimensions of predicates; constants may differ,
    since cells of all constants fall into those of a few. Partials at the places in ``ordered``
    depend on the order of rows, and are fed with rows.
    """
    alike: dict[Hashable, list[int]] = {}
    for place, node in enumerate(partials):
        kind = _kind(node.selection)
        if node.is_fed and kind is not None and place not in ordered:
            slicing = slicings[node.slicing]
            key = (slicing.measure, slicing.timeline, node.relation, node.grouping, kind)
            alike.setdefault(key, []).append(place)
    nodes, found = list(partials), list[Combined]()
    for places in alike.values():
        selection = _united([partials[place].selection for place in places])
        if len({partials[place].slicing for place in places}) < 2 or selection is None:
            continue
        for place in places:
            nodes[place] = replace(nodes[place], combined=len(found))
        found.append(_combined([partials[place] for place in places], slicings, selection))
    return tuple(nodes), tuple(found)


def _kind(selection: Selection) -> Hashable:
    """What selections have in common whose entries come from one; None where none do."""
    if isinstance(selection, Mask):
        return selection
    if isinstance(selection, Cells):
        return frozenset(selection.bounds)
    return None


def _combined(
    nodes: Sequence[Partials], slicings: Sequence[Slicing], selection: Selection
) -> Combined:
    cut = [slicings[place] for place in dict.fromkeys(node.slicing for node in nodes)]
    classes = reduce_classes(each for slicing in cut for each in slicing.classes)
    windows = dict.fromkeys(window for slicing in cut for window in slicing.windows)
    first = cut[0]
    slicing = Slicing(first.measure, first.timeline, tuple(windows), classes, OWNER)
    kept = dict.fromkeys(each.plain for node in nodes for each in node.accumulators)
    node = replace(nodes[0], number=-1, selection=selection, accumulators=tuple(kept), origin=None)
    return Combined(slicing, node)


def _united(selections: Sequence[Selection]) -> Selection | None:
    """One selection that tells apart what each of some tells apart; None where none can."""
    first = selections[0]
    if not isinstance(first, Cells):
        return first
    shapes = [each.shape for each in selections if isinstance(each, Cells)]
    dimensions = tuple(
        _finest([next(d for d in shape.dimensions if d.bound == each.bound) for shape in shapes])
        for each in first.shape.dimensions
    )
    asked = dict.fromkeys(
        pair for shape in shapes for pair in zip(shape.accepts, shape.fails, strict=True)
    )
    accepts, fails = zip(*asked, strict=True)
    shape = Shape(first.shape.places, dimensions, tuple(range(len(asked))), accepts, fails)
    return Cells(shape) if shape.size <= MOST_CELLS else None


def _finest(dimensions: Sequence[Ranked]) -> Ranked:
    """A dimension with the cuts of all, which ascend.

    >>> _finest([Ranked(None, (10, 20), False), Ranked(None, (15, 20), False)]).cuts
    (10, 15, 20)
    """
    cuts = sorted({cut for each in dimensions for cut in each.cuts})
    return replace(dimensions[0], cuts=tuple(cuts))
