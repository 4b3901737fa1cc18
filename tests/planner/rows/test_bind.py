"""Row queries bound to streams: which operators, which columns, which label."""

import pyarrow as pa
import pytest

from muntin.errors import QueryError
from muntin.expressions.zone_names import zone
from muntin.plan.operators import (
    Difference,
    Distinct,
    Exists,
    Join,
    Node,
    RowFinal,
    Select,
    StreamSchema,
    Union,
    Windowed,
    leaves,
)
from muntin.plan.timeline import Timeline
from muntin.planner.rows import bind_rows, row_plan
from muntin.queries import RowQuery, all_queries

T = pa.timestamp("us", "UTC")


def stream(time: pa.DataType = T, **columns: pa.DataType) -> StreamSchema:
    schema = pa.schema([("ts", time), *columns.items()])
    return StreamSchema(schema, Timeline("ts", time))


STREAMS = {
    "orders": stream(id=pa.int64(), total=pa.float64(), buyer=pa.string()),
    "payments": stream(order_id=pa.int32(), amount=pa.float64(), buyer=pa.string()),
    "sent": stream(id=pa.int64(), place=pa.string()),
    "coarse": stream(pa.timestamp("s", "UTC"), id=pa.int64()),
    "plain": stream(pa.int64(), id=pa.int64()),
    "untyped": stream(none=pa.null()),
}
O = "FROM orders [RANGE '10 minutes'] o"  # noqa: E741
P = "payments [RANGE '1 hour'] p"


def bound(sql: str) -> RowFinal:
    (query,) = all_queries(sql)
    assert isinstance(query, RowQuery)
    return bind_rows(query, STREAMS)


def columns(node: Node) -> list[list[str]]:
    return [[f"{c.name}={c.value.key}" for c in leaf.columns] for leaf in leaves(node)]


def test_times_with_and_without_a_zone_meet_only_in_utc() -> None:
    local = {**STREAMS, "payments": stream(pa.timestamp("us"), order_id=pa.int64())}
    (query,) = all_queries(f"SELECT o.id {O} JOIN {P} ON o.id = p.order_id")
    assert isinstance(query, RowQuery)
    bind_rows(query, local)
    with pytest.raises(QueryError, match="one has a zone, the other none") as caught:
        bind_rows(query, local, zone("America/New_York"))
    assert "timezone='UTC'" in str(caught.value)
    bind_rows(query, STREAMS, zone("America/New_York"))


def test_one_stream_is_its_leaf() -> None:
    final = bound(f"SELECT id, total * 2 AS twice {O} WHERE o.total > 1")
    assert isinstance(final.root, Windowed)
    assert final.root.where is not None
    assert final.root.where.key == "total > 1"
    assert (final.output, final.root.label) == ("append", "WKS")
    assert final.schema.names == ["valid_from", "valid_to", "id", "twice"]


def test_join_pushes_conditions_and_keeps_columns_in_use() -> None:
    final = bound(
        f"SELECT o.id, p.amount {O} JOIN {P} ON o.id = p.order_id AND p.amount < o.total"
        " WHERE o.buyer = 'x' AND p.buyer = 'y'"
    )
    assert isinstance(final.root, Select)
    join = final.root.input
    assert isinstance(join, Join)
    assert [leaf.where.key for leaf in leaves(join) if leaf.where] == ["buyer = 'x'", "buyer = 'y'"]
    # The two keys are compared in one type.
    assert columns(join) == [
        ["o.id=id", "o.total=total"],
        ["p.amount=amount", "p.$1=CAST(order_id AS BIGINT)"],
    ]
    assert join.keys == ((0,), (1,))
    assert join.residual is not None
    assert join.residual.key == "`p.amount` < `o.total`"
    assert final.output == "append"
    assert final.range == 3_600_000_000


def test_three_streams_meet_on_one_key() -> None:
    final = bound(
        f"SELECT o.id, s.place {O} JOIN {P} ON o.id = p.order_id"
        " JOIN sent [NOW] s ON s.id = p.order_id AND s.place = o.buyer"
    )
    assert isinstance(final.root, Select)
    join = final.root.input
    assert isinstance(join, Join)
    assert len(join.inputs) == 3
    assert [len(keys) for keys in join.keys] == [1, 1, 1]
    assert join.residual is not None
    assert join.residual.key == "`s.place` = `o.buyer`"
    assert join.inputs[2].range == 1  # type: ignore[union-attr]


def test_computed_and_several_keys() -> None:
    final = bound(
        f"SELECT o.id {O} JOIN {P} ON lower(o.buyer) = lower(p.buyer) AND o.id = p.order_id + 1"
    )
    assert isinstance(final.root, Select)
    assert isinstance(final.root.input, Join)
    assert [len(keys) for keys in final.root.input.keys] == [2, 2]
    assert final.root.input.residual is None


def test_equalities_in_another_type_stay_conditions() -> None:
    # As DOUBLE 2**53 and 2**53 + 1 are equal, as BIGINT they are not.
    streams = {
        "a": stream(k=pa.int64()),
        "b": stream(k=pa.int64()),
        "c": stream(k=pa.float64()),
    }
    sql = "SELECT a.k FROM a [NOW], b [NOW], c [NOW] WHERE a.k = b.k AND b.k = c.k"
    (query,) = all_queries(sql)
    assert isinstance(query, RowQuery)
    root = bind_rows(query, streams).root
    assert isinstance(root, Select)
    assert isinstance(root.input, Join)
    assert root.input.residual is not None
    assert root.input.residual.key == "`a.k` = `b.k`"


def test_left_join_is_pairs_and_padded_rows() -> None:
    final = bound(
        f"SELECT o.id, p.amount {O} LEFT JOIN {P} ON o.id = p.order_id AND p.amount > 0"
        " AND o.total > 1 WHERE o.buyer = 'x' AND p.amount IS NULL"
    )
    assert isinstance(final.root, Select)
    assert isinstance(final.root.input, Union)
    written = final.written
    assert isinstance(written, Select)
    # WHERE filters afterwards what an outer join pads.
    assert written.where is not None
    assert written.where.key == "`p.amount` IS NULL"
    union = written.input
    assert isinstance(union, Union)
    joined, padded = union.inputs
    assert isinstance(joined, Join)
    assert isinstance(padded, Select)
    assert isinstance(padded.input, Exists)
    assert padded.input.negated
    assert padded.schema.equals(joined.schema)
    # ON decides partnership: what it says of the kept side drops no row of it.
    assert joined.residual is not None
    assert joined.residual.key == "`o.total` > 1"
    assert [leaf.where.key for leaf in leaves(joined) if leaf.where] == [
        "buyer = 'x'",
        "amount > 0",
    ]
    assert (final.output, final.root.label) == ("final", "STR")


def test_full_join_pads_both_sides() -> None:
    final = bound(f"SELECT o.id, p.amount {O} FULL JOIN {P} ON o.id = p.order_id EMIT UNMATCHED")
    assert isinstance(final.root, Select)
    assert isinstance(final.root.input, Union)
    _, left, right = final.root.input.inputs
    for padded, kept in ((left, "orders"), (right, "payments")):
        assert isinstance(padded, Select)
        assert isinstance(padded.input, Exists)
        assert padded.input.whole
        assert leaves(padded.input.left)[0].stream == kept


def test_computed_keys_of_padded_rows_stay_conditions() -> None:
    # coalesce of a padded row is not NULL, but a column of its leaf would be.
    with pytest.raises(QueryError, match="nothing joins"):
        bound(
            f"SELECT o.id {O} LEFT JOIN {P} ON o.id = p.order_id"
            " JOIN sent [NOW] s ON s.id = coalesce(p.order_id, 0)"
        )


def test_exists_with_keys_and_conditions() -> None:
    final = bound(
        f"SELECT id {O} WHERE buyer = 'x' AND NOT EXISTS (SELECT 1 FROM {P}"
        " WHERE p.order_id = o.id AND p.amount >= o.total AND p.amount > 0)"
    )
    assert isinstance(final.root, Select)
    exists = final.root.input
    assert isinstance(exists, Exists)
    assert exists.negated
    assert not exists.null_aware
    assert exists.residual is not None
    assert exists.residual.key == "`p.amount` >= `o.total`"
    assert columns(exists)[1] == ["p.amount=amount", "p.$1=CAST(order_id AS BIGINT)"]


def test_not_in_knows_null_and_in_is_exists() -> None:
    final = bound(f"SELECT id {O} WHERE id NOT IN (SELECT order_id FROM {P})")
    assert isinstance(final.root, Select)
    assert isinstance(final.root.input, Exists)
    assert final.root.input.null_aware
    final = bound(f"SELECT id {O} WHERE id IN (SELECT order_id FROM {P} WHERE p.buyer = o.buyer)")
    assert isinstance(final.root, Select)
    assert isinstance(final.root.input, Exists)
    assert not final.root.input.null_aware
    assert len(final.root.input.keys[0]) == 2
    final = bound(
        f"SELECT id {O} WHERE id NOT IN (SELECT order_id FROM {P} WHERE p.buyer = o.buyer)"
    )
    assert final.root.input.null_aware
    assert columns(final.root)[0][final.root.input.keys[0][0]] == "o.id=id"


def test_inner_labels_hide_outer_ones() -> None:
    final = bound(f"SELECT id {O} WHERE id IN (SELECT id FROM sent [NOW] o WHERE o.place = 'x')")
    assert columns(final.root) == [["o.id=id"], ["o#2.id=id"]]


def test_sets_take_one_type_and_the_names_of_the_left() -> None:
    final = bound(f"SELECT id {O} EXCEPT SELECT order_id FROM {P}")
    assert isinstance(final.root, Difference)
    assert final.root.right.schema == final.root.left.schema
    final = bound(
        f"SELECT buyer {O} UNION SELECT buyer FROM {P} UNION ALL SELECT place FROM sent [NOW]"
    )
    assert isinstance(final.root, Union)
    assert isinstance(final.root.inputs[0], Distinct)
    assert final.root.label == "WK"
    with pytest.raises(QueryError, match="UNION ALL of 1 and 3 columns"):
        bound(f"SELECT id {O} UNION ALL SELECT * FROM sent [NOW]")
    with pytest.raises(QueryError, match="UNION of the columns"):
        bound(f"SELECT total > 1 AS a {O} UNION SELECT amount FROM {P}")


@pytest.mark.parametrize(
    ("sql", "output"),
    [
        ("SELECT DISTINCT buyer {O}", "append"),
        ("CREATE QUERY a WITH (output = 'final') AS SELECT DISTINCT buyer {O}", "final"),
        ("CREATE QUERY a WITH (output = 'final') AS SELECT buyer {O}", "append"),
        ("CREATE QUERY a WITH (output = 'changes') AS SELECT DISTINCT buyer {O}", "changes"),
        ("SELECT id {O} EXCEPT ALL SELECT id FROM sent [NOW]", "final"),
    ],
)
def test_output(sql: str, output: str) -> None:
    assert bound(sql.format(O=O)).output == output


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        (
            "CREATE QUERY a WITH (output = 'changes') AS SELECT id {O}",
            ["op", "at", "valid_from", "valid_to", "id"],
        ),
        ("SELECT Istream(id) {O}", ["at", "id"]),
        (
            "SELECT id FROM orders [RANGE '10 minutes' SLIDE '1 minute']",
            ["window_start", "window_end", "id"],
        ),
    ],
)
def test_leading_columns(sql: str, names: list[str]) -> None:
    assert bound(sql.format(O=O)).schema.names == names


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT id FROM order [NOW]", "there is no stream order"),
        ("SELECT idd {O}", "no column idd"),
        ("SELECT buyer {O} JOIN {P} ON o.id = p.order_id", "column buyer is ambiguous"),
        ("SELECT * {O} JOIN {P} ON o.id = p.order_id", "two result columns are named ts"),
        (
            "SELECT id AS valid_to {O}",
            "results begin with valid_from and valid_to, and",
        ),
        ("SELECT o.id {O} JOIN {P} ON o.id < p.order_id", "nothing joins the streams o, p"),
        (
            "SELECT o.id {O} JOIN {P} ON o.id = p.order_id JOIN sent [NOW] s ON s.place = p.buyer",
            "the streams o, p, s are not joined on one common key",
        ),
        ("SELECT id FROM orders [RANGE 5]", "windows are plain integers"),
        ("SELECT id FROM plain [RANGE '5 minutes']", "windows are durations"),
        (
            "SELECT a.id FROM plain [NOW] a, orders [NOW] b WHERE a.id = b.id",
            "time columns of different types",
        ),
        (
            "ISTREAM(SELECT id AS at FROM orders [RANGE '1 second'])",
            "line 1, column 16: query q1: results begin with at, and a column is named at, too",
        ),
        ("SELECT id FROM coarse [NOW]", "lifetimes do not fit"),
        (
            (
                "SELECT a.id FROM coarse [RANGE '1 second'] a, orders [RANGE '1 second'] b"
                " WHERE a.id = b.id"
            ),
            "lifetimes do not fit",
        ),
        ("SELECT id FROM orders [NOW WATTR id]", "the time of orders is ts, not id"),
        ("SELECT id {O} WHERE total", "a condition must be a boolean"),
        (
            (
                "SELECT id {O} WHERE EXISTS (SELECT 1 FROM {P} WHERE p.order_id = o.id AND EXISTS"
                " (SELECT 1 FROM sent [NOW] s WHERE s.id = o.id))"
            ),
            "EXISTS reaches out of two SELECTs",
        ),
        (
            (
                "SELECT o.id FROM orders [RANGE '9 minutes' SLIDE '1 minute'] o"
                " LEFT JOIN {P} ON o.id = p.order_id EMIT UNMATCHED"
            ),
            "line 1, column 74: query q1: EMIT UNMATCHED gives a row once it has ended, too late f",
        ),
        (
            "SELECT DISTINCT o.id {O} LEFT JOIN {P} ON o.id = p.order_id EMIT UNMATCHED",
            "EMIT UNMATCHED gives a row once it has ended, too late for an operator above it",
        ),
        (
            (
                "SELECT o.id {O} LEFT JOIN {P} ON o.id = p.order_id EMIT UNMATCHED"
                " WHERE EXISTS (SELECT 1 FROM sent [NOW] s WHERE s.id = o.id)"
            ),
            "too late for an operator above it",
        ),
        ("SELECT o.id FROM orders o JOIN {P} ON o.id = p.order_id", "o has no window"),
        (
            "SELECT o.id, p.amount {O} LEFT SEMI JOIN {P} ON o.id = p.order_id",
            "SEMI JOIN shows nothing of p: name it in ON alone",
        ),
        (
            "SELECT o.id {O} RIGHT SEMI JOIN {P} ON o.id = p.order_id",
            "line 1, column 48: RIGHT SEMI JOIN is not supported",
        ),
        (
            "SELECT o.id {O} JOIN payments p ON o.id = p.order_id",
            r"column 53: query q1: payments is a stream.*\n.*\n.*\n.*payments \[RANGE '1 hour'\] p",
        ),
        (
            "SELECT a.id FROM plain [NOW] a JOIN payments ON a.id = payments.order_id",
            r"has no window\n.*\n.*\nHint: write payments \[RANGE 3600\]: only",
        ),
        (
            "SELECT DISTINCT o.none AS n FROM untyped [NOW] o",
            r"column 19: (.*\n)*Hint: write CAST\(none AS STRING\) AS n, or give it a type",
        ),
        (
            "SELECT DISTINCT * FROM untyped [NOW]",
            r"Hint: write CAST\(none AS STRING\) AS none, or give it a type",
        ),
        ("SELECT DISTINCT NULL AS n {O}", "query q1: the column n is NULL without a type"),
        (
            "SELECT id, NULL AS n {O} EXCEPT SELECT order_id, NULL AS n FROM {P}",
            "query q1: the column n is NULL without a type",
        ),
        ("Istream(SELECT NULL AS n {O})", "query q1: the column n is NULL without a type"),
    ],
)
def test_refusals(sql: str, message: str) -> None:
    with pytest.raises(QueryError, match=message) as caught:
        bound(sql.format(O=O, P=P))
    assert all(problem.hint for problem in caught.value.problems)


@pytest.mark.parametrize("kind", ["SEMI", "ANTI"])
def test_streams_that_keep_the_right_side_are_to_change_places(kind: str) -> None:
    with pytest.raises(QueryError, match=f"wanted first, and write {kind} JOIN"):
        all_queries(f"SELECT o.id {O} RIGHT {kind} JOIN {P} ON o.id = p.order_id")
    with pytest.raises(QueryError, match=r"with a table|and WHERE close"):
        all_queries(f"SELECT o.id {O} RIGHT {kind} JOIN close ON o.id = close.id")


def test_finer_first_stream_shows_coarser_times() -> None:
    final = bound(
        "SELECT a.id FROM orders [RANGE '1 second'] a, coarse [RANGE '1 second'] b"
        " WHERE a.id = b.id"
    )
    assert final.timeline.type == T


def test_plan_has_all_problems_of_all_queries() -> None:
    found = list(all_queries([f"SELECT id {O}", f"SELECT id {O} WHERE id = 1"]))
    plan = row_plan([each for each in found if isinstance(each, RowQuery)], STREAMS)
    assert plan.streams == STREAMS
    assert [final.name for final in plan.finals] == ["q1", "q2"]
    bad = all_queries([f"SELECT idd {O}", f"SELECT totl {O}"])
    with pytest.raises(QueryError) as caught:
        row_plan([each for each in bad if isinstance(each, RowQuery)], STREAMS)
    assert len(caught.value.problems) == 2


@pytest.mark.parametrize(
    ("sql", "unknown"),
    [
        (
            "SELECT o.idd, p.foo, o.totl {O} JOIN {P} ON o.id = p.order_idd WHERE o.x > 0",
            ["idd in o", "foo in p", "totl in o", "order_idd in p", "x in o"],
        ),
        (
            "SELECT o.idd {O} WHERE EXISTS (SELECT 1 FROM {P} WHERE p.x = o.y AND o.id = p.zz)",
            ["idd in o", "x in p", "y in o", "zz in p"],
        ),
        (
            (
                "SELECT sum(o.idd) AS n FROM orders [RANGE '9 minutes' SLIDE '1 minute'] o"
                " JOIN {P} ON o.id = p.order_idd GROUP BY o.x HAVING max(p.y) > 1"
            ),
            ["idd in o", "order_idd in p", "x in o", "y in p"],
        ),
        (
            "SELECT idd {O} UNION SELECT order_idd FROM payments [NOW]",
            ["idd in o", "order_idd in payments"],
        ),
        ("SELECT o.id {O} JOIN {P} USING (id)", ["id in p"]),
        ("SELECT o.id {O} JOIN {P} USING (order_id)", ["order_id in o"]),
    ],
)
def test_all_unknown_names_of_a_query_are_told_at_their_places(
    sql: str, unknown: list[str]
) -> None:
    text = sql.format(O=O, P=P)
    (query,) = all_queries(text)
    assert isinstance(query, RowQuery)
    with pytest.raises(QueryError) as caught:
        row_plan([query], STREAMS)
    problems = caught.value.problems
    assert [each.message for each in problems] == [f"no column {name}" for name in unknown]
    places = [text[each.column - 1 :].removeprefix("o.").removeprefix("p.") for each in problems]
    assert all(
        place.startswith(name.split()[0]) for place, name in zip(places, unknown, strict=True)
    )
    assert all(each.hint for each in problems)


def test_columns_of_what_is_unknown_are_not_told() -> None:
    sql = (
        f"SELECT o.id, p.foo, bar, q.*, t.x {O} JOIN paymnts [NOW] p ON o.idd = p.order_id"
        " JOIN sen [NOW] q ON q.id = o.id JOIN tbl t ON t.k = o.id"
    )
    (query,) = all_queries(sql)
    assert isinstance(query, RowQuery)
    with pytest.raises(QueryError) as caught:
        bind_rows(query, STREAMS)
    assert [(each.message, each.hint) for each in caught.value.problems] == [
        ("there is no stream paymnts", "did you mean payments?"),
        ("no column idd in o", "did you mean id?"),
        ("there is no stream sen", "did you mean sent?"),
        ("no table tbl", caught.value.problems[-1].hint),
    ]


@pytest.mark.parametrize(
    ("sql", "place"),
    [
        ("SELECT id, total > 1 AS b {O} UNION SELECT order_id, amount FROM {P}", "amount FROM"),
        ("SELECT * FROM orders [NOW] UNION SELECT order_id, amount FROM {P}", "order_id"),
    ],
)
def test_answers_that_do_not_fit_together_are_told_at_the_second(sql: str, place: str) -> None:
    text = sql.format(O=O, P=P)
    with pytest.raises(QueryError) as caught:
        bound(text)
    (problem,) = caught.value.problems
    assert text[problem.column - 1 :].startswith(place)


@pytest.mark.parametrize(
    ("sql", "place"),
    [
        ("SELECT o.id, o.more FROM {0} p ON o.id = p.id", 14),
        ("SELECT o.* FROM {0} p ON o.id = p.id", 8),
        ("SELECT o.more.x FROM {0} p ON o.id = p.id", 10),
    ],
)
def test_nested_columns_cannot_pass_through_a_join(sql: str, place: int) -> None:
    more = pa.struct({"x": pa.int64()})
    schema = pa.schema({"ts": pa.int64(), "id": pa.int64(), "more": more})
    streams = {"orders": StreamSchema(schema, Timeline("ts", pa.int64()))}
    text = sql.format("orders [RANGE 5] o JOIN orders [RANGE 5]")
    (query,) = all_queries(text)
    assert isinstance(query, RowQuery)
    with pytest.raises(QueryError) as caught:
        bind_rows(query, streams)
    assert f"line 1, column {place}: query q1: column more of o is a struct<x: int64>" in str(
        caught.value
    )
    assert "leave it out, or make a column of what you need of the struct" in str(caught.value)


def test_nested_columns_are_named() -> None:
    schema = pa.schema({"ts": pa.int64(), "more": pa.list_(pa.int64())})
    streams = {"orders": StreamSchema(schema, Timeline("ts", pa.int64()))}
    (query,) = all_queries("SELECT * FROM orders [RANGE 5]")
    assert isinstance(query, RowQuery)
    with pytest.raises(QueryError, match=r"column more of type list<.*> cannot be used"):
        bind_rows(query, streams)
