"""Every rewriting of random queries gives the same rows as the query as it was written."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from muntin.plan.operators import Distinct, Node, RowFinal, RowPlan, inputs, with_inputs
from muntin.planner.rows import row_plan
from muntin.planner.rows.rewritings.absences import alternatives, lowered_distinct
from muntin.queries import RowQuery, all_queries
from muntin.testing import row_oracle as oracle
from operators.random_plans import STREAMS, batches, run, stream, table

_CONDITIONS = (
    *("a.k < 2", "a.k = 1", "a.v > 0", "b.v > 0", "b.k IS NULL", "b.s = 'a'", "a.s <> b.s"),
    *("b.v IS NOT NULL", "a.v < b.v", "(a.k IN (0, 1) OR a.k > 1)", "(b.v IS NULL OR b.v > 1)"),
    "b.v + 1 > 2",
)
_PARTNERS = (
    *("c.k = a.k", "c.s = a.s", "c.k = a.k AND c.v <= a.v", "c.k = a.k AND a.v > 0"),
    *("c.k = b.k", "c.s = a.s AND c.k = b.k", "c.v = b.v AND b.v < 3"),
)


def sql(rng: random.Random) -> str:
    """A query over a, and mostly b, with conditions and absences."""

    def window() -> str:
        return f"[RANGE {rng.choice([1, 3, 5, 8, 12])}]"

    joined = rng.random() < 0.75
    select = "DISTINCT a.s, a.v AS w" if rng.random() < 0.3 else "a.k, a.s, a.v AS w"
    source = f"a {window()}"
    if joined:
        word = rng.choice(["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
        source += f" {word} b {window()} ON a.k = b.k{rng.choice(['', ' AND a.s = b.s'])}"
    known = [each for each in _CONDITIONS if joined or "b." not in each]
    where = rng.sample(known, rng.choice([0, 1, 1, 2]))
    partners = [each for each in _PARTNERS if joined or "b." not in each]
    if joined and "DISTINCT" not in select:
        select += ", b.v AS y"
    for each in rng.sample(partners, rng.choice([0, 1, 1, 2])):
        word = rng.choice(["EXISTS", "NOT EXISTS"])
        where.append(f"{word} (SELECT 1 FROM c {window()} WHERE {each})")
    if rng.random() < 0.2:
        where.append(f"a.s NOT IN (SELECT c.s FROM c {window()})")
    conditions = f" WHERE {' AND '.join(where)}" if where else ""
    return f"SELECT {select} FROM {source}{conditions}"


def everywhere(node: Node) -> Iterator[Node]:
    """The node with each alternative of each of its operators, one at a time."""
    if isinstance(node, Distinct):
        lower = lowered_distinct(node)
        if lower is not None:
            yield lower
    yield from alternatives(node)
    for place, each in enumerate(inputs(node)):
        for other in everywhere(each):
            below = list(inputs(node))
            below[place] = other
            yield with_inputs(node, tuple(below))


def shown_in_all_ways(final: RowFinal, rng: random.Random, name: str) -> list[RowFinal]:
    """One root by lifetimes, as changes, at window ends, and by what enters and leaves."""
    slide = rng.choice([1, 2, 3, 5])
    plain = replace(final, name=f"{name}_rows", rewritings=(), written=None)
    windowed = {"slide": slide, "phase": 1 % slide, "range": 12}
    return [
        plain,
        replace(plain, name=f"{name}_changes", output="changes"),
        replace(plain, name=f"{name}_slide", **windowed),
        replace(plain, name=f"{name}_in", show="istream", **windowed),
        replace(plain, name=f"{name}_out", show="dstream"),
    ]


def bound(text: str) -> RowFinal:
    (query,) = all_queries(text)
    assert isinstance(query, RowQuery)
    return row_plan([query], STREAMS).finals[0]


# 258: DISTINCT over an outer join that becomes a join must not be cut into pieces.
@pytest.mark.parametrize("seed", [*range(60), 258])
def test_rewritten_queries_give_the_same_rows(seed: int) -> None:
    rng = random.Random(seed)
    final = bound(sql(rng))
    written = final.written or final.root
    roots = dict.fromkeys([written, final.root, *everywhere(final.root)])
    others = [*roots][2:]
    chosen = [*roots][:2] + rng.sample(others, min(len(others), 4))
    whose = random.Random(seed)
    finals = []
    for number, root in enumerate(chosen):
        # The query as it was written, and beside it what the product shows.
        as_written = "append" if root.label != "STR" else "final"
        own = replace(final, root=root, output=as_written if number == 0 else final.output)
        finals += shown_in_all_ways(own, random.Random(seed), f"q{number}")
    rows = {name: stream(rng, rng.choice([6, 14, 20]), 30) for name in STREAMS}
    tables = {name: table(each) for name, each in rows.items()}
    plan = RowPlan(STREAMS, tuple(finals))
    found = run(plan, batches(whose, rows, whose.choice([0, 3, 8])), whose)
    expected = oracle.answers(plan, written, tables)
    for number in range(len(chosen)):
        oracle.check_lifetimes(expected, found[f"q{number}_rows"])
        for way, leads in (("rows", 2), ("changes", 4), ("slide", 2), ("in", 2), ("out", 1)):
            one, other = (oracle.shown(found[f"q{each}_{way}"], leads) for each in (0, number))
            assert Counter(one) == Counter(other), (final.sql, way, chosen[number])


def test_random_queries_have_rewritings_of_every_rule() -> None:
    seen: Counter[str] = Counter()
    for seed in range(200):
        final = bound(sql(random.Random(seed)))
        seen.update({each.rule for each in final.rewritings})
        seen["alternatives"] += len([*everywhere(final.root)]) > 1
        seen["weaker"] += final.written is not None and final.root.label != final.written.label
    assert all(seen[rule] >= 5 for rule in (
        "push_selections_down", "drop_empty_parts", "pass_conditions_on_keys",
        "select_before_exists", "place_absences", "push_distinct_down", "alternatives", "weaker",
    )), seen  # fmt: skip
