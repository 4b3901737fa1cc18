"""Which queries went over to other trees, when and why; and what of that is under way."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from muntin.display import count
from muntin.plan.explain.model import Fact
from muntin.plan.explain.words import names
from muntin.plan.moves import Move
from muntin.plan.nodes import Partials, SharedPlan
from muntin.plan.timeline import MAX_TICK, Timeline

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moves_facts(plan: SharedPlan) -> tuple[Fact, ...]:
    """The moves that a plan remembers: all for machines, the last for people."""
    if not plan.moves:
        return ()
    told = tuple(_told(move, plan.timeline) for move in plan.moves)
    more = len(told) - 1
    text = told[-1] if not more else f"{told[-1]} ({count(more, 'move')} before)"
    return (Fact("moves", told, text, aside=True),)


def twin_facts(plan: SharedPlan, node: Partials) -> tuple[Fact, ...]:
    """What takes over from a set of partials, and when."""
    if node.twin is None:
        return ()
    host = node.twin + 1
    when = "once its windows that are open are over"
    if node.since is not None and node.since >= -MAX_TICK:
        when = f"once windows from {_time(node.since, plan.timeline)} and before are over"
    return (
        Fact("fed_by", f"partials-{host}", f"fed by partials {host}"),
        Fact("taken_over", when, f"partials {host} take over {when}", aside=True),
    )


def _told(move: Move, timeline: Timeline) -> str:
    when = "with the next batch" if move.at is None else f"at {_time(move.at, timeline)}"
    return f"{names(move.queries)} moved {when}: {move.why}"


def _time(tick: int, timeline: Timeline) -> str:
    """An event time as people write it."""
    if tick < -MAX_TICK:
        return "the start"
    if timeline.plain:
        return f"{tick:,}"
    try:
        return (_EPOCH + timedelta(microseconds=tick)).replace(tzinfo=None).isoformat(" ")
    except OverflowError:
        return f"{tick:,} µs"
