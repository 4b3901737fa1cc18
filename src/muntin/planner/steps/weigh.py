"""The second step: the owner of each query's slices, weighed by what trees cost."""

from __future__ import annotations

from dataclasses import replace

from muntin.planner.draft import Draft
from muntin.planner.owners import Sharing
from muntin.planner.sharing import Optimizer


def weigh(draft: Draft) -> Draft:
    """An owner for each query: those of one owner are cut together.

    Two strategies say themselves who that is: a query alone, or queries with the same window.

    >>> import pyarrow as pa
    >>> from muntin.plan import Timeline
    >>> from muntin.planner.steps.bind import bind
    >>> from muntin.queries import queries
    >>> schema = pa.schema({"ts": pa.int64(), "v": pa.int64()})
    >>> sql = "SELECT max(v) FROM s [RANGE 2 SLIDE 1]"
    >>> sql += "".join(f"; SELECT max(v) FROM s [RANGE {8 * n} SLIDE 8]" for n in range(2, 26))
    >>> draft = bind(Draft(queries(sql), schema, Timeline.of(schema, "ts"), sharer=Optimizer()))
    >>> set(weigh(draft).sharing.owners)
    {''}
    >>> weigh(replace(draft, rate=1.0)).sharing.owners[:3]
    ('tree 1', 'tree 2', 'tree 2')
    """
    return replace(draft, sharing=_sharing(draft))


def _sharing(draft: Draft) -> Sharing:
    if draft.strategy == "unshared":
        return Sharing(tuple(query.query.name for query in draft.bound))
    if draft.strategy == "fragments":
        return Sharing(tuple(repr(query.query.window) for query in draft.bound))
    return draft.sharer(draft.bound, draft.previous, draft.rate)


def weighs_rate(draft: Draft) -> bool:
    """Whether the rate of rows matters for a draft whose queries are bound."""
    if draft.strategy in ("unshared", "fragments") or not isinstance(draft.sharer, Optimizer):
        return False
    return draft.sharer.weighs_rate(draft.bound)
