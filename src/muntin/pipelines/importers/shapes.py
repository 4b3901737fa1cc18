"""Queries that compare no times and have no window: what they would need to be carried over."""

from __future__ import annotations

from sqlglot import exp

from muntin.pipelines.importers.bounds import BOUND_HINT
from muntin.pipelines.importers.partners import unbounded_partner
from muntin.pipelines.importers.windows import Refusal
from muntin.queries.analysis.selections import computes
from muntin.queries.source import position, shown
from muntin.queries.sql.joins import REFUSED_JOINS

TWO_HINT = "join two streams in a query, or write it anew; see docs/joins.md"


def check_shape(select: exp.Select) -> None:
    """Refuse queries that are no aggregates over windows, where more fits than to ask for these.

    Raises:
        Refusal: If there is something to say.
    """
    joins: list[exp.Expr] = list(select.args.get("joins") or ())
    for join in joins:
        refusal = unbounded_partner(join)
        if refusal is not None and len(joins) > 1:
            raise Refusal(join.this, "SEMI or ANTI JOIN beside another join", TWO_HINT)
        if refusal is not None:
            raise refusal
    source = select.args.get("from_")
    table = None if source is None else source.this
    windowless = isinstance(table, exp.Table) and table.args.get("window") is None
    if isinstance(table, exp.Table) and windowless and not computes(select):
        raise _without_window(select, table, joins)
    for join in joins:
        side = join.args.get("side")
        if side in ("RIGHT", "FULL"):
            raise Refusal(join.this, f"{side} JOIN is not supported", REFUSED_JOINS[side])


def _without_window(select: exp.Select, table: exp.Table, joins: list[exp.Expr]) -> Refusal:
    """Why a query that shows rows is refused."""
    name = shown(table.name)
    looked_up = [join for join in joins if not join.this.args.get("version")]
    if len(looked_up) > 1:
        return Refusal(looked_up[1].this, "a join of more than two tables by time", TWO_HINT)
    if looked_up:
        other = looked_up[0].this
        message = f"the join compares no times of {name} and {shown(other.name)}"
        return Refusal(
            other, message, f"{BOUND_HINT}; to join a static table, give {name} a window"
        )
    if select.args.get("distinct") is not None:
        first = select.expressions[0]
        place = table if position(first) is None else first
        hint = f"write FROM {name} [RANGE '1 hour']: a value is shown while some row has it"
        return Refusal(place, "SELECT DISTINCT without a window", hint)
    hint = f"write FROM {name} [NOW] to show rows one by one, or aggregate them over windows"
    return Refusal(table, "the query has no window, and no aggregate", hint)
