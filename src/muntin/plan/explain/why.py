"""By which techniques a query's windows are made of slices, and why, in words."""

from __future__ import annotations

from collections.abc import Sequence

from muntin.plan.nodes import Final, SharedPlan, Technique

_NAMED = 4


def techniques(plan: SharedPlan, final: Final) -> dict[Technique, tuple[str, ...]]:
    """The techniques of a query, and the accumulators that each is for."""
    accumulators = plan.partials[final.partials].accumulators
    found: dict[Technique, dict[str, None]] = {}
    for index, _, technique in final.reads:
        found.setdefault(technique, {})[str(accumulators[index])] = None
    return {technique: tuple(listed) for technique, listed in found.items()}


def why(plan: SharedPlan, final: Final) -> str:
    """Why a query's windows are made as they are, in a sentence."""
    found = techniques(plan, final)
    if not found:
        return "nothing to assemble: the groups of a window are its answer"
    said: dict[tuple[str, str], list[str]] = {}
    for technique, kept in found.items():
        over = " over its own slices" if technique.is_own else ""
        said.setdefault((f"{technique.name}{over}", technique.why), []).extend(kept)
    return "by " + "; ".join(
        f"{name} for {_named(kept)} ({reason})" for (name, reason), kept in said.items()
    )


def _named(kept: Sequence[str]) -> str:
    shown, left = ", ".join(kept[:_NAMED]), len(kept) - _NAMED
    return shown if left <= 0 else f"{shown} and {left:,} more"
