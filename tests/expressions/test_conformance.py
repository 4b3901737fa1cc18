"""Every expression of the table gives what Spark gave: value, type and failure."""

from __future__ import annotations

from functools import cache

import pyarrow as pa
import pytest

from expressions import conformance
from expressions.conformance import Answer
from muntin.expressions import Bound, Evaluated, Evaluator, bind_text
from muntin.expressions.evaluation import program
from muntin.expressions.registry import functions

CASES = conformance.cases()


@cache
def golden() -> dict[str, Answer]:
    return conformance.load_golden()


@cache
def tables() -> dict[bool, pa.Table]:
    return {True: conformance.pairs(), False: conformance.singles()}


def table_for(text: str) -> pa.Table:
    return tables()[conformance.uses_pairs(text)]


def answer(bound: Bound, evaluated: Evaluated) -> Answer:
    errors = [] if evaluated.errors is None else evaluated.errors.to_pylist()
    failed = [row for row, error in enumerate(errors) if error]
    assert evaluated.values.type == bound.type
    return Answer(str(bound.type), conformance.plain(evaluated.values), failed)


def together(batch: pa.Table, texts: list[str]) -> dict[str, Answer]:
    bounds = [bind_text(text, batch.schema) for text in texts]
    found = Evaluator(bounds)(batch)
    return {t: answer(b, e) for t, b, e in zip(texts, bounds, found, strict=True)}


def wrong(ours: dict[str, Answer], rows: list[int]) -> dict[str, list[str]]:
    """What differs from Spark's answers for these rows of the table."""
    found = {}
    for text, mine in ours.items():
        spark = golden()[text]
        values = [spark.values[row] for row in rows]
        failed = [at for at, row in enumerate(rows) if row in spark.failed]
        lines = conformance.differences(
            mine, Answer(spark.type, values, failed), ulps=conformance.ulps(text)
        )
        if lines:
            found[text] = lines
    return found


@pytest.mark.parametrize("text", CASES)
def test_expression_means_what_it_means_in_spark(text: str) -> None:
    batch = table_for(text)
    ours = together(batch, [text])[text]
    assert not conformance.differences(ours, golden()[text], ulps=conformance.ulps(text))


@pytest.mark.parametrize("text", CASES)
def test_only_what_can_fail_fails(text: str) -> None:
    bound = bind_text(text, table_for(text).schema)
    assert bound.can_fail or not golden()[text].failed


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("small", [0, 10**9])
def test_many_expressions_at_once(
    paired: bool, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With and without polars' optimizer, which shares common parts."""
    monkeypatch.setattr(program, "SMALL", small)
    texts = [text for text in CASES if conformance.uses_pairs(text) is paired]
    batch = tables()[paired]
    assert not wrong(together(batch, texts), list(range(batch.num_rows)))


@pytest.mark.parametrize("paired", [True, False])
def test_one_row_at_a_time(paired: bool) -> None:
    """Kernels for scalars and for columns agree."""
    texts = [text for text in CASES if conformance.uses_pairs(text) is paired]
    batch = tables()[paired]
    for row in range(0, batch.num_rows, 3):
        assert not wrong(together(batch.slice(row, 1), texts), [row])


@pytest.mark.parametrize("paired", [True, False])
def test_chunks_do_not_matter(paired: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "SMALL", 0)
    texts = [text for text in CASES if conformance.uses_pairs(text) is paired]
    batch = tables()[paired]
    cut = pa.concat_tables([batch.slice(0, 5), batch.slice(5, 0), batch.slice(5)])
    assert cut.column(0).num_chunks > 1
    assert not wrong(together(cut, texts), list(range(batch.num_rows)))


def test_every_function_is_in_the_table() -> None:
    used = set()
    for text in CASES:
        pending = [bind_text(text, table_for(text).schema).root]
        while pending:
            node = pending.pop()
            used.add(getattr(node, "function", None))
            pending.extend(getattr(node, "args", ()))
    assert set(functions()) <= used
