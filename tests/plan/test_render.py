"""What a rendered plan tells, in every format: stored outputs, and numbers checked by hand."""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

from muntin.engine import LocalEngine
from muntin.errors import MuntinError
from muntin.plan import SharedPlan, render
from muntin.plan.explain.costs import Costs, edge_rate
from muntin.plan.explain.formats import FORMATS
from muntin.planner import build_plan
from muntin.queries import queries
from muntin.testing import trades
from muntin.windows import edges_between

GOLDEN = Path(__file__).parent.parent / "golden"
DOCS = Path(__file__).parent.parent.parent / "docs" / "plans.md"
SCHEMA = pa.schema(
    {
        "ts": pa.timestamp("us", "UTC"),
        "symbol": pa.string(),
        "price": pa.float64(),
        "vol": pa.int64(),
        "seq": pa.int64(),
    }
)
TABLES = {"close": pa.schema({"symbol": pa.string(), "cp": pa.float64()})}
README = """
CREATE QUERY turnover AS
  SELECT sum(price * vol) AS value FROM trades [RANGE '30 minutes' SLIDE '15 minutes'];
CREATE QUERY vwap AS
  SELECT symbol, sum(price * vol) / sum(vol) AS vwap
  FROM trades [RANGE '20 minutes' SLIDE '20 minutes'] GROUP BY symbol;
CREATE QUERY mood AS
  SELECT avg(price * vol) AS size, max(price) AS top
  FROM trades [RANGE '12 minutes' SLIDE '5 minutes'];
"""
MIXED = """
CREATE QUERY mean AS SELECT avg(price) FROM t [RANGE '10 min' SLIDE '5 min'] WHERE vol > 100;
CREATE QUERY spread AS
  SELECT stddev(price), sum(price) FROM t [RANGE '1 h' SLIDE '7 min'] WHERE vol > 500;
CREATE QUERY starts AS
  SELECT symbol, first(price) FILTER (WHERE vol > 0) AS f
  FROM t GROUP BY window(ts, '12 minutes', '5 minutes'), symbol HAVING count(*) > 1;
CREATE QUERY movers AS
  SELECT t.symbol, max(price) AS top, sum(price * vol) AS value
  FROM t [RANGE '10 min' SLIDE '5 min'] JOIN close ON t.symbol = close.symbol
  WHERE price > cp GROUP BY t.symbol;
CREATE QUERY counted AS SELECT count(*) AS n FROM t [ROWS 100 SLIDE 10];
CREATE QUERY numbered AS SELECT count(*) AS n FROM t [RANGE 100 SLIDE 30 WATTR seq];
"""


def readme() -> SharedPlan:
    data = trades(2000)
    return build_plan(queries(README), data.schema, "ts", sample=data)


def mixed() -> SharedPlan:
    return build_plan(queries(MIXED), SCHEMA, "ts", tables=TABLES)


def alike(number: int, *, shared: bool) -> SharedPlan:
    """A plan of many queries without the time to read so many."""
    sql = "CREATE QUERY q AS SELECT sum(price) AS s FROM t [RANGE '18 min' SLIDE '15 min']"
    plan = build_plan(queries(sql), SCHEMA, "ts")
    slicing, node, final = plan.slicings[0], plan.partials[0], plan.finals[0]
    count = 1 if shared else number
    return replace(
        plan,
        slicings=tuple(replace(slicing, owner=f"q{i}") for i in range(count)),
        partials=tuple(replace(node, number=i, slicing=i) for i in range(count)),
        finals=tuple(
            replace(final, partials=i % count, query=replace(final.query, name=f"q{i}"))
            for i in range(number)
        ),
    )


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("plan", [readme, mixed], ids=["readme", "mixed"])
def test_plans_are_shown_as_stored(plan: Callable[[], SharedPlan], suffix: str) -> None:
    notes = {0: ["cut together: they share most edges"]} if plan is mixed else None
    shown = plan().explain(suffix, rate=1000, notes=notes)  # type: ignore[arg-type]
    assert shown == (GOLDEN / f"plan_{plan.__name__}.{suffix}").read_text()
    assert shown == plan().explain(suffix, rate=1000, notes=notes)  # type: ignore[arg-type]


def test_ids_are_unique_and_sources_known() -> None:
    for plan in (readme(), mixed(), alike(256, shared=False)):
        for most in (None, 48, 1):
            items = list(render(plan, most=most).walk())
            ids = {item.id for item in items}
            assert len(ids) == len(items)
            assert {source for item in items for source in item.sources} <= ids


def test_json_tells_of_every_query_and_every_key_is_documented() -> None:
    text, seen = DOCS.read_text(), set()

    def visit(item: dict[str, object]) -> None:
        seen.add((item["kind"], item.get("facts", {}).get("query")))  # type: ignore[attr-defined]
        for key in (*item, *item["facts"]):  # type: ignore[misc]
            assert f"`{key}`" in text, key
        for child in item["children"]:  # type: ignore[attr-defined]
            visit(child)

    for plan in (readme(), mixed(), alike(256, shared=True), alike(256, shared=False)):
        seen.clear()
        shown = plan.explain("json", rate=2)
        read = json.loads(shown)
        assert json.loads(json.dumps(read)) == read
        visit(read)
        assert {("final", final.name) for final in plan.finals} <= seen


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("number", [1, 256, 4096])
def test_many_queries_stay_readable(number: int, shared: bool) -> None:
    plan = alike(number, shared=shared)
    shown = {name: plan.explain(name, rate=10) for name in ("text", "mermaid", "svg")}
    assert len(shown["text"].splitlines()) < 200
    assert len(shown["mermaid"]) < 20_000
    assert len(shown["svg"]) < 60_000
    assert len(repr(plan).splitlines()) < 150
    if shared or number < 4096:
        told = json.loads(plan.explain("json"))
        assert len(told["children"]) == 2 * len(plan.partials)
    if number > 256:
        left = "4,090 more" if shared else "4,072 more sets of partials"
        assert left in shown["text"]
        assert left in re.sub(r"</text>\n<text[^>]*>", " ", shown["svg"])


def test_edges_are_those_of_the_common_period() -> None:
    classes = [(7, 0), (5, 0), (5, 2), (11, 3)]
    counted = len(edges_between(classes, 0, 5 * 7 * 11))
    assert edge_rate(classes).rate == Fraction(counted, 5 * 7 * 11)
    assert edge_rate([(24 * 60, 0)]).rate == Fraction(1, 1440)
    many = edge_rate([(period, 0) for period in (999_983, 999_979, 999_961, 999_959)])
    assert not many.exact
    assert float(many.rate) == pytest.approx(4 / 999_970, rel=0.01)


def test_operations_are_rows_edges_and_reads() -> None:
    sql = "SELECT sum(price) FROM t [RANGE '18 min' SLIDE '15 min'];"
    costs = Costs(build_plan(queries(sql * 3), SCHEMA, "ts"), rate=10)
    edges, windows = 2 / 900, 1 / 900
    assert costs.operations() == pytest.approx(
        (10 + edges + 2 * 3 * windows, 3 * (10 + edges + 2 * windows))
    )
    assert costs.edges_per_hour() == (8, 24)


def test_estimates_are_what_the_engine_counts() -> None:
    """Over hours of one row per second; windows at the ends are not whole."""
    sql = """
    CREATE QUERY a AS SELECT sum(price), max(vol) FROM t [RANGE '10 min' SLIDE '3 min'];
    CREATE QUERY b AS SELECT avg(price) FROM t [RANGE '20 min' SLIDE '7 min'] WHERE vol >= 0;
    CREATE QUERY c AS SELECT avg(price) FROM t [RANGE '9 min' SLIDE '5 min'] WHERE vol >= 0;
    """
    rows, hours = 36_000, 10
    times = pa.array([i * 1_000_000 for i in range(rows)]).cast(SCHEMA.field("ts").type)
    one = pa.array([1] * rows)
    columns = [times, pa.array(["x"] * rows), one.cast(pa.float64()), one, one]
    engine = LocalEngine(build_plan(queries(sql), SCHEMA, "ts"))
    engine.feed(pa.table(columns, schema=SCHEMA))
    engine.close()
    done = engine.progress()
    estimate = Costs(engine.plan, rate=1).operations()
    assert estimate is not None
    expected = estimate[0] * hours * 3600
    finals = done.final_aggregations + done.cell_aggregations
    assert done.partial_aggregations + finals == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf"), "ten", True])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    with pytest.raises(MuntinError, match=r"rate (is|must be)") as error:
        mixed().explain(rate=rate)
    assert error.value.hint


def test_an_unknown_format_is_refused_with_the_nearest() -> None:
    with pytest.raises(MuntinError, match="no format 'mermade'") as error:
        mixed().explain("mermade")  # type: ignore[arg-type]
    assert error.value.hint == "did you mean mermaid?"
    with pytest.raises(MuntinError, match="no format 3"):
        mixed().explain(3)  # type: ignore[arg-type]


def test_the_page_shows_what_its_example_prints() -> None:
    blocks = re.findall(r"```(\w*)\n(.*?)```", DOCS.read_text(), re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(blocks[0][1], DOCS.name, "exec"), {})
    for language, shown in blocks[1:]:
        if language == "sql":
            continue
        assert not language
        assert shown in printed.getvalue()


def test_a_plan_without_queries_is_shown() -> None:
    plan = build_plan([], SCHEMA, "ts")
    for name in FORMATS:
        assert "SharedPlan" in plan.explain(name, rate=5)  # type: ignore[arg-type]
