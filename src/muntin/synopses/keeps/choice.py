"""The synopsis that a keep names: whether it can hold what is kept, and what it holds instead."""

from __future__ import annotations

from dataclasses import replace

from muntin.aggregates import Part
from muntin.aggregates.algebra import HISTOGRAM
from muntin.aggregates.columns.codes import coder
from muntin.aggregates.types import is_number
from muntin.expressions import Bound
from muntin.plan.nodes import Accumulator, Lowering, SharedPlan
from muntin.planner.bound import COUNT_ROWS

# What the buckets of values bound.
GRAM_CALLS = ("max", "min", "sum", "avg", "count")
SHARED_CALLS = ("max", "min", "count")
_LEFT_OUT = "or leave WITH out: each part then gets what suits it"


def synopsis_problem(synopsis: str | None, plan: SharedPlan) -> tuple[str, str] | None:
    """Why a synopsis cannot hold the aggregates of a keep, and what to write; None if it can."""
    calls = [each for final in plan.finals for each in final.lowerings]
    if synopsis == "running":
        stiff = [each for each in plan.partials[0].accumulators if not each.part.invertible]
        if stiff:
            message = f"{stiff[0]} cannot be subtracted, which running totals need"
            return message, f"write WITH (synopsis = 'interval'), {_LEFT_OUT}"
    if synopsis == "timegram":
        return _gram_problem(calls)
    if synopsis == "ordered_sharing":
        return _sharing_problem(calls)
    return None


def _gram_problem(calls: list[Lowering]) -> tuple[str, str] | None:
    others = [each.aggregate.name for each in calls if each.aggregate.name not in GRAM_CALLS]
    if others:
        message = f"a TimeGram bounds {', '.join(GRAM_CALLS)}, and not {others[0]}"
        return message, f"keep {others[0]} in a keep of its own, {_LEFT_OUT}"
    arguments = _arguments(calls)
    if len(arguments) != 1:
        named = ", ".join(each.key for each in arguments) or "none"
        message = f"a TimeGram buckets the values of one expression, and this keep has {named}"
        return message, f"keep aggregates of one expression in each keep, {_LEFT_OUT}"
    if not is_number(arguments[0].type):
        message = f"a TimeGram buckets numbers, and {arguments[0].key} is not one"
        return message, f"keep aggregates of a number, {_LEFT_OUT}"
    return None


def _sharing_problem(calls: list[Lowering]) -> tuple[str, str] | None:
    others = [each.aggregate.name for each in calls if each.aggregate.name not in SHARED_CALLS]
    if others:
        message = f"OrderedSharing has max and min, not {others[0]}"
        return message, f"keep {others[0]} in a keep of its own, {_LEFT_OUT}"
    extremes = [each.args[0] for each in calls if each.aggregate.name in ("max", "min")]
    if not extremes:
        return "OrderedSharing has max and min, and this keeps none", f"keep one, {_LEFT_OUT}"
    texts = [each.key for each in extremes if coder(each.type).moves]
    if texts:
        message = f"OrderedSharing compares numbers and times, and {texts[0]} is neither"
        return message, f"keep it in a keep of its own, {_LEFT_OUT}"
    return None


def _arguments(calls: list[Lowering]) -> list[Bound]:
    found = {arg.key: arg for each in calls for arg in each.args}
    return list(found.values())


def with_gram(plan: SharedPlan, buckets: int) -> SharedPlan:
    """The plan of a keep that has, instead of aggregates, how many values are in which bucket."""
    (node,) = plan.partials
    (argument,) = _arguments([each for final in plan.finals for each in final.lowerings])
    part = Part(f"{HISTOGRAM}{buckets.bit_length() - 1}", (argument.type,))
    gram = Accumulator(part, (argument,))
    return replace(plan, partials=(replace(node, accumulators=(COUNT_ROWS, gram)),))
