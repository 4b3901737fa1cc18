"""Every rule of docs/semantics.md, each with its timeline."""

from __future__ import annotations

import datetime as dt
import math

import pyarrow as pa
import pytest

import muntin
from muntin.errors import DataError, MuntinError, QueryError

UTC = dt.UTC


def answer(table: pa.Table, sql: str, **options: object) -> dict[str, list[object]]:
    result = muntin.aggregate(table, sql, time="t", **options)  # type: ignore[arg-type]
    columns: dict[str, list[object]] = result["q1"].to_pydict()
    return columns


def ticks(*times: int | None, **columns: list[object]) -> pa.Table:
    return pa.table({"t": pa.array(times, pa.int64()), **columns})


class TestTime:
    def test_a_row_at_an_edge_belongs_to_the_window_that_starts_there(self) -> None:
        #  t   0  1  2  3  4  5  6  7
        #      |a       b  |c
        #      [0, 4)      [4, 8)
        rows = ticks(0, 3, 4, v=["a", "b", "c"])
        got = answer(rows, "SELECT min(v) AS lo, max(v) AS hi FROM s [RANGE 4 SLIDE 4]")
        assert got == {
            "window_start": [0, 4],
            "window_end": [4, 8],
            "lo": ["a", "c"],
            "hi": ["b", "c"],
        }

    def test_overlapping_windows_hold_a_row_range_over_slide_times(self) -> None:
        #  t   -3 .. 0 .. 12 13 15 .. 27 30
        #       [-3, 15)      x
        #             [12, 30)x
        rows = ticks(13)
        got = answer(rows, "SELECT count(*) AS n FROM s [RANGE 18 SLIDE 15]")
        assert got == {"window_start": [-3, 12], "window_end": [15, 30], "n": [1, 1]}

    def test_hopping_windows_leave_gaps(self) -> None:
        #  t   0 1 2 3 4 5 6 7 8 9 10
        #        x     y   z
        #          [3, 5)    [8, 10)      x and z lie in no window
        rows = ticks(1, 4, 6)
        got = answer(rows, "SELECT count(*) AS n FROM s [RANGE 2 SLIDE 5]")
        assert got == {"window_start": [3], "window_end": [5], "n": [1]}

    def test_brackets_align_ends_and_the_others_align_starts(self) -> None:
        #  t      0   2   5   7
        #  ends   [-2,    5) [3, 10)      RANGE 7 SLIDE 5
        #  starts [0,        7)           window(t, 7, 5)
        rows = ticks(1)
        ends = answer(rows, "SELECT count(*) AS n FROM s [RANGE 7 SLIDE 5]")
        assert ends["window_start"] == [-2]
        moved = answer(rows, "SELECT count(*) AS n FROM s [RANGE 7 SLIDE 5 OFFSET 2]")
        assert moved["window_start"] == [-5, 0]
        stamps = rows.set_column(0, "t", rows["t"].cast(pa.timestamp("s")))
        starts = answer(
            stamps, "SELECT count(*) AS n FROM s GROUP BY window(t, '7 seconds', '5 seconds')"
        )
        assert starts["window_start"] == [
            dt.datetime(1969, 12, 31, 23, 59, 55),
            dt.datetime(1970, 1, 1),
        ]
        hop = answer(
            stamps,
            "SELECT count(*) AS n FROM HOP(TABLE s, DESCRIPTOR(t), INTERVAL '5' SECOND, "
            "INTERVAL '7' SECOND) GROUP BY window_start, window_end",
        )
        assert hop == starts

    def test_negative_times_are_floored_not_truncated(self) -> None:
        #  t   -7 -6 -5 -4 -3 -2 -1  0
        #       [-7.. -4) is no window; [-8, -4) and [-4, 0) are
        got = answer(ticks(-7, -4, -1), "SELECT count(*) AS n FROM s [RANGE 4 SLIDE 4]")
        assert got == {"window_start": [-8, -4], "window_end": [-4, 0], "n": [1, 2]}

    def test_nanoseconds_are_floored_to_microseconds(self) -> None:
        #  ns  -1500 ... -1 0 1 ... 999 1000
        #      in us: -2   -1 0 0     0 1
        rows = pa.table({"t": pa.array([-1500, -1, 0, 999, 1000], pa.timestamp("ns"))})
        got = muntin.aggregate(rows, "SELECT count(*) AS n FROM s [RANGE '1us' SLIDE '1us']", "t")
        assert got["q1"]["n"].to_pylist() == [1, 1, 2, 1]
        assert got["q1"].schema.field("window_start").type == pa.timestamp("ns")

    @pytest.mark.parametrize(
        "kind",
        [
            pa.timestamp("s"),
            pa.timestamp("ms", "Europe/Berlin"),
            pa.timestamp("us", "UTC"),
            pa.timestamp("ns", "+03:00"),
            pa.date32(),
            pa.date64(),
        ],
        ids=str,
    )
    def test_bounds_have_the_type_and_zone_of_the_time_column(self, kind: pa.DataType) -> None:
        days = pa.array([dt.date(2024, 2, 28), dt.date(2024, 3, 1)])
        rows = pa.table({"t": days.cast(pa.timestamp("s")).cast(kind)})
        got = muntin.aggregate(
            rows, "SELECT count(*) AS n FROM s [RANGE '2 days' SLIDE '1 day']", "t"
        )
        schema = got["q1"].schema
        assert schema.field("window_start").type == schema.field("window_end").type == kind
        ends = got["q1"]["window_end"].cast(pa.timestamp("s")).to_pylist()
        assert [end.day for end in ends] == [29, 1, 2, 3]

    def test_integer_times_keep_their_width(self) -> None:
        rows = pa.table({"t": pa.array([1, 2], pa.int16())})
        result = muntin.aggregate(rows, "SELECT count(*) AS n FROM s [RANGE 4 SLIDE 4]", "t")["q1"]
        assert result.schema.field("window_start").type == pa.int16()

    @pytest.mark.parametrize(
        ("kind", "window", "hint"),
        [
            (pa.int64(), "RANGE '5 minutes' SLIDE '5 minutes'", "plain integers"),
            (pa.timestamp("us"), "RANGE 5 SLIDE 5", "durations"),
            (pa.date32(), "RANGE '6 hours' SLIDE '6 hours'", "finer type"),
            (pa.timestamp("s"), "RANGE '500 ms' SLIDE '500 ms'", "finer type"),
            (pa.timestamp("us"), "RANGE '5 minutes'", "no SLIDE in time"),
        ],
        ids=str,
    )
    def test_windows_that_the_time_column_cannot_express_are_refused(
        self, kind: pa.DataType, window: str, hint: str
    ) -> None:
        rows = pa.table({"t": pa.array([], kind)})
        with pytest.raises(QueryError, match=hint):
            muntin.aggregate(rows, f"SELECT count(*) FROM s [{window}]", "t")

    def test_a_gap_of_years_costs_nothing(self) -> None:
        year = 365 * 86_400 * 1_000_000
        rows = pa.table({"t": pa.array([0, 3000 * year], pa.timestamp("us"))})
        got = muntin.aggregate(rows, "SELECT count(*) AS n FROM s [RANGE '2 ms' SLIDE '1 ms']", "t")
        assert got["q1"]["n"].to_pylist() == [1, 1, 1, 1]

    def test_windows_may_be_cut_by_another_column(self) -> None:
        #  seq  0 1 2 3 | 4       a query's time is the column its window is measured by
        rows = ticks(9, 8, 7, None, seq=[1, 2, None, 3], v=["a", "b", "c", "d"])
        got = answer(rows, "SELECT count(*) AS n, first(v) AS f FROM s [RANGE 4 SLIDE 4 WATTR seq]")
        assert got == {"window_start": [0], "window_end": [4], "n": [3], "f": ["a"]}

    def test_each_query_leaves_out_the_rows_that_lack_its_own_time(self) -> None:
        rows = ticks(1, None, 3, 4, 2, u=[4, 3, 2, None, 1], v=[1, 2, 3, 4, 5])
        result = muntin.aggregate(
            rows,
            "CREATE QUERY by_u AS SELECT count(*) AS n, last(v) AS l"
            "  FROM s [RANGE 9 SLIDE 9 WATTR u]"
            ";CREATE QUERY by_t AS SELECT count(*) AS n, last(v) AS l FROM s [RANGE 9 SLIDE 9]"
            ";CREATE QUERY rows AS SELECT count(*) AS n, last(v) AS l FROM s [ROWS 3 SLIDE 3]",
            time="t",
        )
        assert result["by_t"].select(["n", "l"]).to_pylist() == [{"n": 4, "l": 4}]
        assert result["by_u"].select(["n", "l"]).to_pylist() == [{"n": 4, "l": 1}]
        assert result["rows"].select(["n", "l"]).to_pylist() == [{"n": 3, "l": 3}, {"n": 1, "l": 4}]
        assert (result.rows, result.bad_rows) == (5, 2)


class TestResults:
    def test_columns_lead_with_the_window_then_groups_then_aggregates(self) -> None:
        rows = ticks(1, 2, sym=["x", "y"], p=[1.5, 2.5])
        result = muntin.aggregate(
            rows, "SELECT sum(p) AS s, sym AS symbol FROM t [RANGE 4 SLIDE 4] GROUP BY sym", "t"
        )["q1"]
        assert result.column_names == ["window_start", "window_end", "symbol", "s"]

    def test_where_removes_the_window_and_filter_does_not(self) -> None:
        #  t   0 . 4 . 8       v > 0 holds in [4, 8) only
        rows = ticks(1, 5, v=[0, 1])
        window = "FROM s [RANGE 4 SLIDE 4]"
        where = answer(rows, f"SELECT count(*) AS n {window} WHERE v > 0")
        assert (where["window_start"], where["n"]) == ([4], [1])
        kept = answer(rows, f"SELECT count(*) FILTER (WHERE v > 0) AS n {window}")
        assert (kept["window_start"], kept["n"]) == ([0, 4], [0, 1])

    def test_emit_empty_fills_gaps_between_the_first_and_the_last_row(self) -> None:
        #  t   0 2 4 6 8 10 12
        #        x         y          windows [4, 6) to [8, 10) are empty
        rows = ticks(2, 10, v=[1, 2])
        sql = "SELECT count(*) AS n, sum(v) AS s FROM s [RANGE 2 SLIDE 2] EMIT EMPTY"
        got = answer(rows, sql)
        assert got["window_start"] == [2, 4, 6, 8, 10]
        assert (got["n"], got["s"]) == ([1, 0, 0, 0, 1], [1, None, None, None, 2])
        assert answer(rows, sql.removesuffix(" EMIT EMPTY"), emit_empty=True) == got

    def test_emit_empty_of_no_rows_is_empty(self) -> None:
        got = answer(ticks(), "SELECT count(*) AS n FROM s [RANGE 2 SLIDE 2] EMIT EMPTY")
        assert got["n"] == []

    def test_percentiles_between_values_that_are_far_apart_are_their_mean(self) -> None:
        most = 1.5 * 2.0**1023
        for below, above, quarter, middle in (
            (-most, most, -most / 2, 0.0),
            (-math.inf, 8.0, -math.inf, -math.inf),
            (8.0, math.inf, math.inf, math.inf),
        ):
            sql = "SELECT percentile(v, 0.25) AS q, median(v) AS m FROM s [RANGE 4 SLIDE 4]"
            got = answer(ticks(1, 2, v=[below, above]), sql)
            assert (got["q"], got["m"]) == ([quarter], [middle])

    def test_groups_null_nan_and_negative_zero(self) -> None:
        #  t   1   1    2    2     3    3
        #  x  0.0 -0.0 NaN  NaN  NULL NULL
        values = [0.0, -0.0, math.nan, math.nan, None, None]
        rows = ticks(1, 1, 2, 2, 3, 3, x=values)
        got = answer(rows, "SELECT x, count(*) AS n FROM s [RANGE 4 SLIDE 4] GROUP BY x")
        assert got["n"] == [2, 2, 2]
        assert got["x"][0] is None
        assert math.copysign(1, got["x"][1]) == 1.0  # type: ignore[arg-type]
        assert math.isnan(got["x"][2])  # type: ignore[arg-type]

    def test_rows_come_by_window_then_group(self) -> None:
        rows = ticks(5, 1, 1, k=["a", "b", "a"])
        got = answer(rows, "SELECT k, count(*) AS n FROM s [RANGE 4 SLIDE 4] GROUP BY k")
        assert (got["window_start"], got["k"]) == ([0, 0, 4], ["a", "b", "a"])

    def test_having_filters_result_rows(self) -> None:
        rows = ticks(1, 1, 5, k=["a", "a", "b"])
        got = answer(rows, "SELECT k, sum(1) AS n FROM s [RANGE 4 SLIDE 4] GROUP BY k HAVING n > 1")
        assert (got["k"], got["n"]) == (["a"], [2])

    def test_groups_without_aggregates_are_the_distinct_ones(self) -> None:
        rows = ticks(1, 1, 5, k=["a", "a", "b"])
        got = answer(rows, "SELECT k FROM s [RANGE 4 SLIDE 4] GROUP BY k")
        assert (got["window_start"], got["k"]) == ([0, 4], ["a", "b"])


class TestNumbers:
    def test_sums_of_doubles_are_exact(self) -> None:
        #  a running sum would never recover from 1e16
        rows = ticks(1, 2, 3, 6, 7, x=[1e16, 1.0, -1e16, 0.1, 0.2])
        got = answer(rows, "SELECT sum(x) AS s FROM s [RANGE 5 SLIDE 5]")
        assert got["s"] == [1.0, math.fsum([0.1, 0.2])]

    def test_nan_and_infinity_leave_with_their_row(self) -> None:
        #  t   1    5    9
        #     NaN  inf   1.0
        rows = ticks(1, 5, 9, x=[math.nan, math.inf, 1.0])
        got = answer(rows, "SELECT sum(x) AS s, max(x) AS m FROM s [RANGE 8 SLIDE 4]")
        assert [repr(value) for value in got["s"]] == ["nan", "nan", "inf", "1.0"]
        assert [repr(value) for value in got["m"]] == ["nan", "nan", "inf", "1.0"]

    def test_integer_sums_may_pass_through_overflow(self) -> None:
        big = 2**63 - 1
        rows = ticks(1, 2, 3, 5, 6, v=[big, big, -big, big, big])
        result = muntin.aggregate(rows, "SELECT sum(v) AS s FROM s [RANGE 4 SLIDE 4]", time="t")
        assert result["q1"]["s"].to_pylist() == [big, None]
        assert result.errors == {"q1": 1}
        with pytest.raises(DataError, match="1 value failed"):
            muntin.aggregate(rows, "SELECT sum(v) FROM s [RANGE 4 SLIDE 4]", "t", on_error="fail")

    def test_variance_does_not_cancel(self) -> None:
        rows = ticks(1, 2, 3, x=[1e9 + 4, 1e9 + 7, 1e9 + 13])
        got = answer(rows, "SELECT var_samp(x) AS v, var_pop(x) AS p FROM s [RANGE 4 SLIDE 4]")
        assert got["v"] == [21.0]
        assert got["p"] == [14.0]

    def test_ties_in_time_are_decided_by_the_value(self) -> None:
        #  t   1 1 1
        #  v   b a c       first takes the smallest, last the largest
        for order in ([0, 1, 2], [2, 1, 0], [1, 2, 0]):
            rows = ticks(1, 1, 1, v=["b", "a", "c"]).take(order)
            got = answer(rows, "SELECT first(v) AS f, last(v) AS l FROM s [RANGE 4 SLIDE 4]")
            assert (got["f"], got["l"]) == (["a"], ["c"])

    def test_an_aggregate_of_nothing_is_null_and_a_count_zero(self) -> None:
        rows = ticks(1, v=pa.array([None], pa.int64()))
        got = answer(
            rows, "SELECT sum(v) AS s, count(v) AS n, max(v) AS m FROM s [RANGE 4 SLIDE 4]"
        )
        assert (got["s"], got["n"], got["m"]) == ([None], [0], [None])


class TestFailures:
    def test_a_failed_value_is_null_and_counted_for_its_query_only(self) -> None:
        rows = ticks(1, 2, 3, a=[6, 1, 8], b=[3, 0, 2])
        result = muntin.aggregate(
            rows,
            "CREATE QUERY ratio AS SELECT sum(a / b) AS s FROM s [RANGE 4 SLIDE 4];"
            "CREATE QUERY safe AS SELECT sum(a / b) AS s FROM s [RANGE 4 SLIDE 4] WHERE b > 0;"
            "CREATE QUERY plain AS SELECT sum(a) AS s FROM s [RANGE 4 SLIDE 4]",
            time="t",
        )
        assert result["ratio"]["s"].to_pylist() == [6.0]
        assert result["safe"]["s"].to_pylist() == [6.0]
        assert result.errors == {"ratio": 1}

    def test_rows_without_a_time_are_counted_or_fail(self) -> None:
        rows = ticks(1, None, 2)
        sql = "SELECT count(*) AS n FROM s [RANGE 4 SLIDE 4]"
        result = muntin.aggregate(rows, sql, time="t")
        assert (result["q1"]["n"].to_pylist(), result.bad_rows, result.rows) == ([2], 1, 3)
        with pytest.raises(DataError, match="1 row without a usable time"):
            muntin.aggregate(rows, sql, time="t", on_bad_row="fail")

    def test_a_bad_query_names_its_place_and_the_nearest_column(self) -> None:
        rows = ticks(1, price=[1.0])
        with pytest.raises(QueryError) as caught:
            muntin.aggregate(rows, "SELECT sum(pric) FROM s [RANGE 4 SLIDE 4]", time="t")
        assert "line 1, column 12" in str(caught.value)
        assert "did you mean price?" in str(caught.value)

    def test_all_bad_queries_are_reported_together(self) -> None:
        rows = ticks(1, v=[1])
        bad = "; ".join(f"SELECT sum(x{i}) FROM s [RANGE 4 SLIDE 4]" for i in range(20))
        with pytest.raises(QueryError) as caught:
            muntin.aggregate(rows, bad, time="t")
        assert len(caught.value.problems) == 20

    def test_an_absurd_number_of_windows_is_refused(self) -> None:
        rows = pa.table({"t": pa.array([0], pa.timestamp("us"))})
        with pytest.raises(MuntinError, match="larger SLIDE"):
            muntin.aggregate(rows, "SELECT count(*) FROM s [RANGE '9 days' SLIDE '1 us']", "t")


class TestRows:
    def test_rows_are_counted_before_where_in_the_order_of_time_then_columns(self) -> None:
        #  t   1 2 2 3 5       positions 0 1 2 3 4
        #  v   e b a d c       at 2: a before b
        rows = ticks(5, 2, 2, 1, 3, v=["c", "b", "a", "e", "d"])
        sql = "SELECT count(*) AS n, first(v) AS f FROM s [ROWS 2 SLIDE 2] WHERE v <> 'd'"
        assert answer(rows, sql) == {
            "window_start": [1, 2, 5],
            "window_end": [2, 3, 5],
            "n": [2, 1, 1],
            "f": ["e", "b", "c"],
        }

    def test_windows_of_rows_overlap(self) -> None:
        #  t   10 20 30 40 50
        #      [  2 )               ROWS 4 SLIDE 2 ends after 2, 4, 6 rows, and holds up to 4
        rows = ticks(10, 20, 30, 40, 50)
        got = answer(rows, "SELECT count(*) AS n FROM s [ROWS 4 SLIDE 2]")
        assert got == {
            "window_start": [10, 10, 30, 50],
            "window_end": [20, 40, 50, 50],
            "n": [2, 4, 3, 1],
        }
