"""The rules by which row queries are rewritten, in order, and when each is asked.

Rules of the first kind make every plan cheaper: conditions go down. Those of the second weigh plans
by what is known of the streams, and leave a query as it was written where that is nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from muntin.plan.operators import Join, Node, Rewriting, RowFinal, RowPlan, inputs
from muntin.planner.rows.rewritings.absences import place_absences, push_distinct_down
from muntin.planner.rows.rewritings.costs import Costs, StoreKey, store_key
from muntin.planner.rows.rewritings.rates import StreamRate
from muntin.planner.rows.rewritings.selections import (
    pass_conditions_on_keys,
    push_selections_down,
    select_before_exists,
)

ALWAYS = (push_selections_down, select_before_exists, pass_conditions_on_keys)
WEIGHED = (push_distinct_down, place_absences)


def rewritten(root: Node) -> tuple[Node, tuple[Rewriting, ...]]:
    """The operators of a query with its conditions as low as they can be, and what was done."""
    told: list[Rewriting] = []
    for rule in ALWAYS:
        root, found = rule(root)
        told += found
    return root, tuple(told)


def weighed(
    plan: RowPlan, rates: Mapping[str, StreamRate], previous: RowPlan | None = None
) -> RowPlan:
    """The plan with the cheapest operators for each query, as far as rates are known.

    A query that runs already stays as it is, with what its operators keep.

    Args:
        plan: The queries, each as it was written but for its conditions.
        rates: What is known of streams, by name.
        previous: The plan that runs.
    """
    running = {} if previous is None else {final.name: final for final in previous.finals}
    stores = Counter(key for final in plan.finals for key in _stores(final.root))
    # Operators that run already are shared, whatever others would cost by themselves.
    known = {_written(final): final for final in running.values()}
    finals = []
    for final in plan.finals:
        before, alike = running.get(final.name), known.get(_written(final))
        if before is not None and _asked(before) == _asked(final):
            made = before
        elif alike is not None and not final.replicates and not alike.replicates:
            made = replace(final, root=alike.root, rewritings=alike.rewritings,
                           written=alike.written)  # fmt: skip
        else:
            made = _weigh(final, Costs(rates, set(stores - Counter(_stores(final.root)))))
        known.setdefault(_written(made), made)
        finals.append(made)
    return replace(plan, finals=tuple(finals))


def is_undecided(plan: RowPlan) -> bool:
    """Whether some query stays as it was written only because nothing is known of its streams."""
    return any(_is_open(each) for final in plan.finals for each in final.rewritings)


def _is_open(each: Rewriting) -> bool:
    return not each.applied and each.cost is None


def _weigh(final: RowFinal, costs: Costs) -> RowFinal:
    if final.replicates:
        # Which streams may be spread is told by the operators as the query has them.
        return final
    root, told = final.root, [each for each in final.rewritings if not _is_open(each)]
    for rule in WEIGHED:
        root, found = rule(root, costs)
        told += found
    written = final.written if root == final.root else final.written or final.root
    return replace(final, root=root, written=written, rewritings=tuple(told))


def _written(final: RowFinal) -> Node:
    """The operators of a query as it was written."""
    return final.written or final.root


def _asked(final: RowFinal) -> RowFinal:
    """What a query asks, however its operators are arranged."""
    return replace(final, root=_written(final), written=None, rewritings=(), output="final")


def _stores(node: Node) -> Iterator[StoreKey]:
    """The joins below an operator that may keep their rows together with others."""
    if isinstance(node, Join) and (key := store_key(node)) is not None:
        yield key
    for each in inputs(node):
        yield from _stores(each)
