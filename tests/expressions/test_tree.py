"""Structures tell expressions apart; operands bound once are refused where they lie too deep."""

from __future__ import annotations

import pyarrow as pa
import pytest
from sqlglot import exp, parse_one

from muntin.expressions import BindingError, bind
from muntin.expressions.binding.binder import MAX_DEPTH, Binder
from muntin.expressions.tree import structure

SCHEMA = pa.schema({"a": pa.int64(), "b": pa.int64(), "s": pa.string()})
DIFFERENT = (
    *("a", "b", "`A`", "'a'", "1", "1.0", "'1'", "TRUE", "a + b", "b + a", "a - b", "(a)", "-a"),
    *("a IN (1, 2)", "a IN (2, 1)", "a IN (1)", "CAST(a AS INT)", "CAST(a AS BIGINT)", "a > 1"),
    *("concat(s, s)", "s || s", "a BETWEEN 1 AND 2", "CASE WHEN a > 1 THEN 1 END", "abs(a)"),
)


def test_structures_are_equal_for_equal_nodes_only() -> None:
    found = [structure(parse_one(text, dialect="spark")) for text in DIFFERENT]
    again = [structure(parse_one(f"  {text} ", dialect="spark")) for text in DIFFERENT]
    assert found == again
    assert len(set(found)) == len(DIFFERENT)


def test_one_binder_binds_as_many_do() -> None:
    binder = Binder(SCHEMA)
    texts = ["a + b > 1", "a + b > 2", "(a + b) < 3", "3 = a + b", "A + b = 3", "abs(a + b) > a"]
    for text in texts * 2:
        node = parse_one(text, dialect="spark")
        shared, alone = bind(node, SCHEMA, binder), bind(node, SCHEMA)
        assert (shared.key, shared.type, shared.root) == (alone.key, alone.type, alone.root)


def nested(levels: int, node: exp.Expr) -> exp.Expr:
    for _ in range(levels):
        node = exp.Abs(this=node)
    return node


def test_an_operand_known_at_one_depth_may_be_too_deep_at_another() -> None:
    binder = Binder(SCHEMA)
    condition = exp.GT(this=nested(60, exp.column("a")), expression=exp.Literal.number(1))
    bind(condition, SCHEMA, binder)
    chosen = exp.If(this=condition, true=exp.Literal.number(1), false=exp.Literal.number(2))
    node = nested(MAX_DEPTH - 50, chosen)
    with pytest.raises(BindingError) as alone:
        bind(node, SCHEMA)
    with pytest.raises(BindingError) as shared:
        bind(node, SCHEMA, binder)
    assert str(shared.value) == str(alone.value)
    assert shared.value.node is alone.value.node
