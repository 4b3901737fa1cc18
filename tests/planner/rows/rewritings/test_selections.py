"""Conditions that go down: which plans they give, and which stay as they were written."""

from __future__ import annotations

import pyarrow as pa
import pytest

from muntin.plan.operators import (
    Exists,
    Join,
    RowFinal,
    Select,
    StreamSchema,
    Union,
    Windowed,
    leaves,
)
from muntin.plan.timeline import Timeline
from muntin.planner.rows import row_plan
from muntin.queries import RowQuery, all_queries

_TIME = Timeline("ts", pa.int64())
_ORDERS = pa.schema({"ts": pa.int64(), "id": pa.int64(), "total": pa.float64(), "who": pa.string()})
_PAID = pa.schema({"ts": pa.int64(), "id": pa.int32(), "amount": pa.float64(), "n": pa.int64()})
STREAMS = {"orders": StreamSchema(_ORDERS, _TIME), "paid": StreamSchema(_PAID, _TIME)}
LEFT = "SELECT o.id, p.amount FROM orders [RANGE 9] o LEFT JOIN paid [RANGE 5] p ON o.id = p.id"


def bound(sql: str) -> RowFinal:
    (query,) = all_queries(sql)
    assert isinstance(query, RowQuery)
    return row_plan([query], STREAMS).finals[0]


def rules(final: RowFinal) -> list[str]:
    return [each.rule for each in final.rewritings if each.applied]


def wheres(final: RowFinal) -> list[str | None]:
    return [None if leaf.where is None else leaf.where.key for leaf in leaves(final.root)]


def test_an_outer_join_whose_padding_is_refused_is_a_join() -> None:
    final = bound(f"{LEFT} WHERE p.amount > 5")
    assert rules(final) == ["push_selections_down", "drop_empty_parts"]
    assert isinstance(final.root, Select)
    assert isinstance(final.root.input, Join)
    assert wheres(final) == [None, "amount > 5"]
    # Ends are known when rows are born, so they need not wait.
    assert final.written is not None
    assert (final.written.label, final.root.label) == ("STR", "WK")
    assert final.output == "append"


def test_values_that_were_whole_are_not_cut_into_pieces() -> None:
    final = bound(f"{LEFT.replace('SELECT', 'SELECT DISTINCT')} WHERE p.amount > 5")
    assert (final.root.label, final.output) == ("WK", "final")


@pytest.mark.parametrize("unmatched", ["", " EMIT UNMATCHED"])
def test_an_outer_join_without_its_pairs_is_an_absence(unmatched: str) -> None:
    final = bound(f"{LEFT}{unmatched} WHERE p.id IS NULL")
    assert rules(final) == ["drop_empty_parts"]
    assert isinstance(final.root, Select)
    assert isinstance(final.root.input, Exists)
    assert final.root.input.whole == bool(unmatched)
    assert final.root.where is None


def test_columns_beside_the_key_may_be_null_in_pairs() -> None:
    final = bound(f"{LEFT} WHERE p.amount IS NULL")
    assert isinstance(final.root, Select)
    assert isinstance(final.root.input, Union)
    assert wheres(final)[:2] == [None, "amount IS NULL"]


def test_conditions_that_padding_may_satisfy_leave_both_parts() -> None:
    final = bound(f"{LEFT} WHERE coalesce(p.amount, 0) < o.total")
    assert isinstance(final.root.input, Union)  # type: ignore[union-attr]


@pytest.mark.parametrize("condition", ["p.n + 1 > 5", "CAST(o.who AS INT) = p.n"])
def test_what_may_fail_stays_where_it_was_written(condition: str) -> None:
    final = bound(f"{LEFT} WHERE {condition}")
    assert final.written is None
    assert rules(final) == []
    assert isinstance(final.root, Select)
    assert final.root.where is not None


def test_a_condition_that_never_holds_is_left_to_say_so() -> None:
    final = bound(f"{LEFT} WHERE p.amount > 5 AND p.id IS NULL")
    assert final.written is None


def test_conditions_on_keys_pass_to_partners_in_their_type() -> None:
    final = bound(
        "SELECT o.id FROM orders [RANGE 9] o JOIN paid [RANGE 5] p ON o.id = p.id WHERE o.id < 7"
    )
    assert rules(final) == ["pass_conditions_on_keys"]
    assert wheres(final) == ["id < 7", "CAST(id AS BIGINT) < 7"]


@pytest.mark.parametrize(("word", "left"), [("EXISTS", "id = 3"), ("NOT EXISTS", None)])
def test_partners_tell_of_rows_that_need_one(word: str, left: str | None) -> None:
    final = bound(
        f"SELECT o.id FROM orders [RANGE 9] o WHERE {word} "
        "(SELECT 1 FROM orders [RANGE 5] p WHERE p.id = o.id AND p.id = 3)"
    )
    assert wheres(final) == [left, "id = 3"]


def test_not_in_keeps_its_nulls() -> None:
    final = bound(
        "SELECT o.id FROM orders [RANGE 9] o WHERE o.id < 7 AND o.id NOT IN "
        "(SELECT p.id FROM orders [RANGE 5] p)"
    )
    assert wheres(final) == ["id < 7", None]


def test_what_tells_equal_values_apart_does_not_pass() -> None:
    final = bound(
        "SELECT o.id FROM orders [RANGE 9] o JOIN orders [RANGE 5] p ON o.total = p.total "
        "WHERE abs(o.total) = 0"
    )
    assert rules(final) == []


def test_exists_makes_no_pairs_for_what_the_left_row_decides() -> None:
    final = bound(
        "SELECT o.id FROM orders [RANGE 9] o WHERE EXISTS "
        "(SELECT 1 FROM paid [RANGE 5] p WHERE p.id = o.id AND o.total > 3)"
    )
    assert "select_before_exists" in rules(final)
    assert isinstance(final.root, Select)
    exists = final.root.input
    assert isinstance(exists, Exists)
    assert exists.residual is None
    assert isinstance(exists.left, Windowed)
    assert exists.left.where is not None
    assert exists.left.where.key == "total > 3"


def test_explain_says_what_was_done() -> None:
    (query,) = all_queries(f"{LEFT} WHERE p.amount > 5")
    assert isinstance(query, RowQuery)
    shown = row_plan([query], STREAMS).explain()
    assert [each.strip(" │") for each in shown.splitlines() if "_" in each] == [
        "push_selections_down: `p.amount` > 5 at paid",
        "drop_empty_parts: the rows without a partner, where `p.amount` > 5 never holds",
    ]
