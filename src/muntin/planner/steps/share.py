"""The third step: one slicing for all queries of an owner, cut by every window among them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from muntin.plan.nodes import Axis, Slicing
from muntin.planner.draft import Draft
from muntin.windows import EdgeClass, Window, cut_classes, reduce_classes
from muntin.windows.edges import Slicing as SlicingName


def share(draft: Draft) -> Draft:
    """The slicings that queries share, each query on the axis of its owner.

    >>> import pyarrow as pa
    >>> from muntin.plan import Timeline
    >>> from muntin.planner.owners import Sharing
    >>> from muntin.planner.steps.bind import bind
    >>> from muntin.queries import queries
    >>> schema = pa.schema({"ts": pa.int64(), "v": pa.int64()})
    >>> sql = "; ".join(f"SELECT sum(v) FROM s [RANGE {n} SLIDE {n}]" for n in (4, 6, 9))
    >>> draft = bind(Draft(queries(sql), schema, Timeline.of(schema, "ts")))
    >>> draft = share(replace(draft, sharing=Sharing(("a", "a", "b"))))
    >>> [(slicing.owner, slicing.classes) for slicing in draft.slicings.values()]
    [('a', ((4, 0), (6, 0))), ('b', ((9, 0),))]
    """
    bound = tuple(
        query.asked_by(query.query, (*query.axis[:2], owner), query.predicate)
        for query, owner in zip(draft.bound, draft.sharing.owners, strict=True)
    )
    windows: dict[Axis, dict[Window, None]] = {}
    for query in bound:
        windows.setdefault(query.axis, {})[query.query.window] = None
    slicings = {axis: _slicing(axis, each, draft.slicing) for axis, each in windows.items()}
    return replace(draft, bound=bound, slicings=slicings)


def _slicing(axis: Axis, windows: Iterable[Window], name: SlicingName) -> Slicing:
    listed = tuple(windows)
    classes = cut_classes(listed, name)
    marks: tuple[EdgeClass, ...] = ()
    if name == "cutty":
        # Window ends that no window starts at; reduced together, so that those are left out.
        every = reduce_classes((*classes, *cut_classes(listed, "pairs")))
        marks = tuple(each for each in every if each not in classes)
    return Slicing(*axis[:2], listed, classes, axis[2], marks)
