"""Outer joins on keys that are computed, beside the same joins on stored columns."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import muntin

SELECTS = (("l.s AS x, r.s AS y", ""), ("count(*) AS n, max(r.s) AS y", " SLIDE 3"))
WORDS = ("a", "A", "b", "B", "", None)


def drawn(seed: int) -> dict[str, pa.Table]:
    """Two streams with a column, and what is computed from it as another."""
    chance = random.Random(seed)
    found = {}
    for name in ("l", "r"):
        words = [chance.choice(WORDS) for _ in range(chance.randrange(30))]
        upper = [word if word is None else word.upper() for word in words]
        found[name] = pa.table(
            {
                "ts": pa.array(sorted(chance.randrange(40) for _ in words), pa.int64()),
                "s": pa.array(words, pa.string()),
                "u": pa.array(upper, pa.string()),
                "c": pa.array(["a" if word is None else word for word in words], pa.string()),
            }
        )
    return found


@pytest.mark.parametrize("kind", ["LEFT", "RIGHT", "FULL"])
@pytest.mark.parametrize(
    ("computed", "stored"),
    [
        ("upper(l.s) = upper(r.s)", "l.u = r.u"),
        ("l.s = coalesce(r.s, 'a')", "l.s = r.c"),
        ("coalesce(l.s, 'a') = r.s", "l.c = r.s"),
    ],
)
def test_computed_keys_join_as_stored_ones(kind: str, computed: str, stored: str) -> None:
    join = "FROM l [RANGE 7{0}] l {1} JOIN r [RANGE 5] r ON {2}"
    for seed in range(4):
        tables = drawn(seed)
        for select, slide in (
            ("l.s AS x, r.s AS y", ""),
            ("count(*) AS n, max(r.s) AS y", " SLIDE 3"),
        ):
            answers = [
                muntin.aggregate(
                    tables, f"SELECT {select} {join.format(slide, kind, on)}", time="ts"
                )["q1"].to_pylist()
                for on in (computed, stored)
            ]
            assert sorted(map(repr, answers[0])) == sorted(map(repr, answers[1]))


def test_what_is_computed_from_padding_is_no_key() -> None:
    sql = (
        "SELECT l.s FROM l [RANGE 7] l LEFT JOIN r [RANGE 5] r ON upper(l.s) = upper(r.s)"
        " LEFT JOIN l [RANGE 5] m ON coalesce(r.s, 'a') = m.s"
    )
    with pytest.raises(muntin.QueryError, match=r"common key|nothing joins"):
        muntin.aggregate(drawn(1), sql, time="ts")
