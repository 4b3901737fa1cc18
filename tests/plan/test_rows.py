"""Row plans explained: labels, what is kept, how results are shown."""

import json

import pyarrow as pa
import pytest

from muntin.errors import MuntinError
from muntin.plan.operators import RowPlan, StreamSchema
from muntin.plan.timeline import Timeline
from muntin.planner.rows import row_plan
from muntin.queries import RowQuery, all_queries

SQL = """
CREATE QUERY unpaid AS SELECT o.id FROM orders [RANGE '10 minutes'] o
  WHERE total > 5 AND NOT EXISTS (SELECT 1 FROM payments [RANGE '1 hour'] p
    WHERE p.order_id = o.id AND p.amount >= o.total);
CREATE QUERY ids AS SELECT DISTINCT id FROM orders [RANGE '5 minutes' SLIDE '1 minute'];
CREATE QUERY pairs WITH (output = 'changes') AS SELECT o.id FROM orders [RANGE '5 minutes'] o
  JOIN payments [NOW] p ON o.id = p.order_id;
CREATE QUERY gone AS SELECT Dstream(id) FROM orders [RANGE '5 minutes'];
"""
EXPLAINED = """\
RowPlan  4 queries over 2 streams
├─ unpaid  STR  final: each row once, when W has passed its end; any sink takes it
│  │  moves by the least W of orders, payments
│  └─ select  STR
│     │  keeps nothing: rows pass with their lifetimes; ends depend on rows to come
│     └─ NOT EXISTS  STR  by o.id = p: CAST(order_id AS BIGINT)  if `p.amount` >= `o.total`
│        │  keeps left rows and right lifetimes until they end, taken as W passes; \
ends depend on rows to come
│        ├─ orders [RANGE 10 minutes]  WKS  where total > 5
│        └─ payments [RANGE 1 hour]  WKS
├─ ids  WK  the answer at window ends, every 1 minute; any sink takes it
│  │  moves by the W of orders
│  └─ DISTINCT  WK
│     │  keeps at most two rows per value, taken as W passes; ends are known at birth
│     └─ orders [RANGE 5 minutes]  WKS
├─ pairs  WK  changes: '+' when a row is born, '-' when it ends early; \
any sink takes the log, duckdb and postgres can hold the live table
│  │  moves by the least W of orders, payments
│  └─ select  WK
│     │  keeps nothing: rows pass with their lifetimes; ends are known at birth
│     └─ join  WK  on o.id = p: CAST(order_id AS BIGINT)
│        │  keeps each side's rows until they end, and meets them on arrival; \
ends are known at birth
│        ├─ orders [RANGE 5 minutes]  WKS
│        └─ payments [RANGE 1 microsecond]  WKS
└─ gone  WKS  what left the answer, at each instant; any sink takes it
   │  moves by the W of orders
   └─ orders [RANGE 5 minutes]  WKS"""


def plan(sql: str = SQL) -> RowPlan:
    time = pa.timestamp("us", "UTC")
    orders = pa.schema({"ts": time, "id": pa.int64(), "total": pa.float64()})
    payments = pa.schema({"ts": time, "order_id": pa.int32(), "amount": pa.float64()})
    streams = {
        "orders": StreamSchema(orders, Timeline("ts", time)),
        "payments": StreamSchema(payments, Timeline("ts", time)),
    }
    return row_plan([each for each in all_queries(sql) if isinstance(each, RowQuery)], streams)


def test_text() -> None:
    assert plan().explain() == EXPLAINED


def test_results_that_do_not_end_by_their_parts() -> None:
    joined = "FROM orders [RANGE '5 minutes'{0}] o JOIN payments [NOW{0}] p ON o.id = p.order_id"
    never = plan(f"SELECT o.id {joined.format(' INTERNAL')}").explain()
    assert "q1  MON  append" in never
    assert "select  WK" in never
    lasting = plan(f"SELECT Wstream(o.id)[RANGE '1 minute'] {joined.format('')}").explain()
    assert "q1  WKS  append" in lasting


@pytest.mark.parametrize("option", ["output = 'final'", "output = 'changes'", "restore = true"])
def test_values_are_counted_where_they_are_shown_whole(option: str) -> None:
    slide = " SLIDE '1 minute'" if "restore" in option else ""
    text = f"SELECT DISTINCT id FROM orders [RANGE '5 minutes'{slide}]"
    assert "a count per value" in plan(f"CREATE QUERY a WITH ({option}) AS {text}").explain()
    assert "at most two rows per value" in plan(text).explain()


def test_what_outer_joins_read_twice_is_told_once() -> None:
    joins = "".join(
        f" LEFT JOIN payments [RANGE '5 minutes'] p{number} ON o.id = p{number}.order_id"
        for number in range(5)
    )
    found = plan(f"CREATE QUERY all_of AS SELECT o.id FROM orders [RANGE '1 hour'] o{joins}")
    lines = found.explain().splitlines()
    # Five joins of a dozen lines each, where each would have all lines of those below it twice.
    assert sum(line.endswith("UNION ALL  as above") for line in lines) == 4
    assert len(lines) < 70
    told = found.explain("json")
    assert told.count('"same"') == 4


def test_json_tells_columns_and_conditions() -> None:
    read = json.loads(plan().explain("json"))
    (select,) = read["children"][0]["children"]
    (exists,) = select["children"]
    assert exists["facts"]["condition"] == "`p.amount` >= `o.total`"
    assert exists["children"][1]["facts"]["columns"] == ["p.amount", "p.$1"]


def test_drawings_and_unknown_formats() -> None:
    assert plan().explain("mermaid").startswith("flowchart LR")
    assert "<svg" in plan().explain("svg")
    with pytest.raises(MuntinError, match="there is no format"):
        plan().explain("html")  # type: ignore[arg-type]
