"""Random expressions of columns and constants give what Spark gives: value, type and failure."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from expressions import conformance, random_expressions
from muntin.expressions import BindingError, Bound, Evaluator, bind_text
from spark.live_expressions import evaluated

COUNT = 150
# Other seeds are tried by hand: MUNTIN_SEEDS=100-120.
FIRST, _, LAST = os.environ.get("MUNTIN_SEEDS", "7").partition("-")
SEEDS = range(int(FIRST), int(LAST or FIRST) + 1)
# Spark computes constants, and leaves out what cannot matter, before it looks at rows: then an
# operand that fails beside a constant NULL does not fail. Rows show what an expression means.
RULES = (
    *("NullPropagation", "NullDownPropagation", "ConstantFolding", "BooleanSimplification"),
    *("SimplifyConditionals", "SimplifyCasts", "SimplifyBinaryComparison", "OptimizeIn"),
    *("UnwrapCastInBinaryComparison", "PushFoldableIntoBranches", "ConstantPropagation"),
    *("ReplaceNullWithFalseInPredicate", "FoldablePropagation", "ReorderAssociativeOperator"),
)
SETTINGS = {
    "spark.sql.optimizer.excludedRules": ",".join(
        f"org.apache.spark.sql.catalyst.optimizer.{rule}" for rule in RULES
    ),
    # Generated code computes some constants outside of the guard, and takes longer to make.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def bound(texts: list[str], schema: Any) -> dict[str, Bound]:
    """The expressions that are not refused: those of too many digits are."""
    found = {}
    for text in texts:
        try:
            found[text] = bind_text(text, schema)
        except BindingError:
            continue
    return found


@pytest.fixture
def plain_spark(spark: Any) -> Iterator[Any]:
    """Spark without rules that rewrite expressions, and without generated code."""
    for key, value in SETTINGS.items():
        spark.conf.set(key, value)
    yield spark
    for key in SETTINGS:
        spark.conf.unset(key)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_expressions(plain_spark: Any, seed: int) -> None:
    batch = random_expressions.table(seed)
    bounds = bound(random_expressions.expressions(seed, COUNT), batch.schema)
    assert len(bounds) > COUNT * 0.8
    theirs = evaluated(plain_spark, batch, list(bounds))
    wrong = {}
    for text, one in zip(bounds, Evaluator([*bounds.values()])(batch), strict=True):
        one.values.validate(full=True)
        errors = [] if one.errors is None else one.errors.to_pylist()
        failed = [row for row, error in enumerate(errors) if error]
        values = conformance.plain(one.values)
        ours = conformance.Answer(str(bounds[text].type), values, failed)
        lines = conformance.differences(ours, theirs[text])
        if lines:
            wrong[text] = lines
    assert not wrong
