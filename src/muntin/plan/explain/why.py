"""How the engine assembles windows from slices, and why so.

The technique follows from what a part of an aggregate can do: all windows of a family are read
off one pass over its slices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from muntin.aggregates.parts import USER, Part
from muntin.plan.nodes import Final, SharedPlan

Technique: TypeAlias = Literal["running_totals", "monotone_deque", "slice_by_slice"]

_REASONS: dict[Technique, str] = {
    "running_totals": "running totals for {}, which can be subtracted",
    "monotone_deque": "a monotone deque for {}, where one of two values always wins",
    "slice_by_slice": "slices one by one for {}, of which no more is known than how to combine",
}
_NAMED = 4


def technique(part: Part) -> Technique:
    """How the engine slides over the partials of one part.

    >>> technique(Part("sum")), technique(Part("max"))
    ('running_totals', 'monotone_deque')
    """
    if part.invertible:
        return "running_totals"
    return "slice_by_slice" if part.kind.startswith(USER) else "monotone_deque"


def techniques(plan: SharedPlan, final: Final) -> dict[Technique, tuple[str, ...]]:
    """The techniques that a query's windows are assembled by, and the accumulators for each."""
    accumulators = plan.partials[final.partials].accumulators
    found: dict[Technique, dict[str, None]] = {}
    for index in dict.fromkeys(i for each in final.lowerings for i in each.accumulators):
        each = accumulators[index]
        found.setdefault(technique(each.part), {})[str(each)] = None
    return {name: tuple(listed) for name, listed in found.items()}


def why(plan: SharedPlan, final: Final) -> str:
    """Why a query's windows are assembled as they are, in a sentence."""
    found = techniques(plan, final)
    if not found:
        return "nothing to assemble: the groups of a window are its answer"
    return "by " + "; ".join(_REASONS[name].format(_named(kept)) for name, kept in found.items())


def _named(kept: Sequence[str]) -> str:
    shown, left = ", ".join(kept[:_NAMED]), len(kept) - _NAMED
    return shown if left <= 0 else f"{shown} and {left:,} more"
