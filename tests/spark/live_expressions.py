"""Asks Spark itself for the value of expressions, row by row."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from expressions import conformance

# A shared subexpression would be evaluated ahead of the guard around each expression.
GUARDED = {
    "spark.sql.subexpressionElimination.enabled": "false",
    "spark.sql.alwaysInlineCommonExpr": "true",
}


def answers(spark: Any, expressions: list[str]) -> dict[str, conformance.Answer]:
    """Spark's answers, all from two jobs.

    An ANSI error aborts a whole query, so each expression is wrapped into Spark's own TryEval:
    a row on which it fails gives NULL instead of an array that holds the value.
    """
    found: dict[str, conformance.Answer] = {}
    for wanted, table in ((True, conformance.pairs()), (False, conformance.singles())):
        chosen = [text for text in expressions if conformance.uses_pairs(text) is wanted]
        found |= evaluated(spark, table, chosen)
    return {text: found[text] for text in expressions}


def evaluated(spark: Any, table: pa.Table, texts: list[str]) -> dict[str, conformance.Answer]:
    """Spark's answers on the rows of one table, from one job."""
    from pyspark.sql.pandas.types import from_arrow_schema

    for key, value in GUARDED.items():
        spark.conf.set(key, value)
    # Without being told, Spark reads times without a zone as those of the session's.
    schema = from_arrow_schema(table.schema, prefer_timestamp_ntz=True)
    frame = spark.createDataFrame(table, schema).coalesce(1)
    columns = [_guarded(spark, text).alias(f"c{i}") for i, text in enumerate(texts)]
    result = frame.select(*columns).toArrow()
    return {text: _answer(result.column(f"c{i}")) for i, text in enumerate(texts)}


def _guarded(spark: Any, text: str) -> Any:
    from pyspark.sql.classic.column import Column

    jvm = spark._jvm
    parser = spark._jsparkSession.sessionState().sqlParser()
    parsed = parser.parseExpression(f"array({text})")
    guard = jvm.org.apache.spark.sql.catalyst.expressions.TryEval(parsed)
    return Column(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(guard))


def _answer(column: pa.ChunkedArray) -> conformance.Answer:
    arrays = column.combine_chunks()
    failed = [row for row, valid in enumerate(arrays.is_valid().to_pylist()) if not valid]
    values = pc.list_element(arrays, 0)
    return conformance.Answer(str(values.type), conformance.plain(values), failed)
