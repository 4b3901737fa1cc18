"""The three spellings of a window, all exact."""

import pytest

from muntin.queries import Query, queries
from muntin.windows import Window

MINUTE = 60_000_000


def one(text: str) -> Query:
    (query,) = queries(text)
    return query


@pytest.mark.parametrize(
    ("clause", "window"),
    [
        ("[RANGE '12 minutes' SLIDE '5 minutes']", Window("12 minutes", "5 minutes")),
        ("[RANGE 12 MINUTES SLIDE 5 MINUTES]", Window("12 minutes", "5 minutes")),
        ("[range 12 minutes, slide 5 minutes]", Window("12 minutes", "5 minutes")),
        (
            "[RANGE INTERVAL '12' MINUTE SLIDE INTERVAL 5 MINUTES]",
            Window("12 minutes", "5 minutes"),
        ),
        ('[RANGE "12 minutes" SLIDE INTERVAL "5" MINUTE]', Window("12 minutes", "5 minutes")),
        ("[RANGE 90s SLIDE 1h30m]", Window("90s", "90 minutes")),
        ("[RANGE 1 HOUR 30 MINUTES SLIDE '1h']", Window("90 minutes", "1 hour")),
        ("[SLIDE]", None),
        ("[RANGE 100 SLIDE 10]", Window(100, 10)),
        ("[RANGE 100 SLIDE 10 OFFSET -3]", Window(100, 10, -3)),
        ("[RANGE 100 OFFSET 3 SLIDE 10]", Window(100, 10, 3)),
        (
            "[RANGE '12 minutes' SLIDE '5 minutes' OFFSET '1 minute']",
            Window("12 minutes", "5 minutes", "1 minute"),
        ),
        (
            "[RANGE 12 MINUTES SLIDE 5 MINUTES OFFSET -1 MINUTE]",
            Window("12 minutes", "5 minutes", "-1 minute"),
        ),
        ("[RANGE '1 day']", Window("1 day")),
        ("[RANGE 10]", Window(10)),
        ("[ROWS 100 SLIDE 10]", Window(100, 10, measure="rows")),
        ("[ROWS 100 SLIDE 1 TUPLE]", Window(100, 1, measure="rows")),
        ("[ROWS 100]", Window(100, measure="rows")),
        ("[RANGE '5 minutes' SLIDE 1 TUPLE]", Window("5 minutes", 1, slide_measure="rows")),
    ],
)
def test_brackets(clause: str, window: Window | None) -> None:
    text = f"SELECT count(*) AS n FROM trades {clause}"
    if window is None:
        with pytest.raises(ValueError, match="expected RANGE or ROWS"):
            queries(text)
    else:
        assert one(text).window == window


@pytest.mark.parametrize(
    "source",
    [
        "trades [RANGE 10 SLIDE 5]",
        "Trades [RANGE 10 SLIDE 5] T",
        "trades [RANGE 10 SLIDE 5] AS t",
        "trades t [RANGE 10 SLIDE 5]",
        "trades AS t [RANGE 10 SLIDE 5]",
        "`trades`\n  [ -- the window\n RANGE 10 /* ten */ SLIDE 5 ]",
    ],
)
@pytest.mark.parametrize("rest", ["", " WHERE vol > 0", " GROUP BY symbol", " EMIT EMPTY"])
def test_brackets_stand_before_or_after_the_alias(source: str, rest: str) -> None:
    query = one(f"SELECT sum(vol) FROM {source}{rest}")
    assert query.window == Window(10, 5)
    assert query.source.lower() == "trades"


def test_qualified_columns_are_stored_without_the_stream() -> None:
    query = one(
        "SELECT T.symbol, sum(t.vol) AS v FROM Trades T [RANGE 10 SLIDE 5]"
        " WHERE t.vol > 0 GROUP BY t.symbol"
    )
    assert query.alias == "T"
    assert query.sql() == (
        "CREATE QUERY q1 AS SELECT symbol, sum(vol) AS v FROM Trades [RANGE 10 SLIDE 5]"
        " WHERE vol > 0 GROUP BY symbol"
    )


HOP = "DESCRIPTOR(ts), INTERVAL '5' MINUTE, INTERVAL '12' MINUTE"


@pytest.mark.parametrize(
    "source",
    [
        f"HOP(TABLE s, {HOP})",
        f"hop(table s, {HOP}) AS h",
        f"TABLE(HOP(TABLE s, {HOP}))",
        f"TABLE (HOP(TABLE s, {HOP})) h",
        "HOP(s, ts, '5 minutes', '12 minutes')",
        "HOP(DATA => TABLE s, TIMECOL => DESCRIPTOR(ts), SLIDE => '5m', SIZE => '12m')",
        "TABLE(HOP(SIZE => 12 MINUTES, SLIDE => '5m', TIMECOL => DESCRIPTOR(ts), DATA => s))",
    ],
)
@pytest.mark.parametrize("groups", ["", " GROUP BY window_start, window_end"])
def test_hop_takes_slide_then_size(source: str, groups: str) -> None:
    query = one(f"SELECT window_start, window_end, count(*) AS n FROM {source}{groups}")
    assert query.window == Window("12 minutes", "5 minutes", align="start")
    assert (query.source, query.time) == ("s", "ts")
    assert query.columns == ("window_start", "window_end", "n")


def test_hop_and_tumble_offsets() -> None:
    hop = one(f"SELECT count(*) FROM HOP(TABLE s, {HOP}, INTERVAL '1' MINUTE)")
    assert hop.window == Window("12 minutes", "5 minutes", "1 minute", align="start")
    tumble = one("SELECT count(*) FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '5' MINUTE)")
    assert tumble.window == Window("5 minutes", "5 minutes", align="start")
    moved = one(
        "SELECT count(*) FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '5' MINUTE, '1 minute')"
    )
    assert moved.window == Window("5 minutes", "5 minutes", "1 minute", align="start")


@pytest.mark.parametrize(
    ("call", "window"),
    [
        ("window(ts, '10 minutes')", Window("10 minutes", "10 minutes", align="start")),
        ("WINDOW(ts, '12 minutes', '5 minutes')", Window("12 minutes", "5 minutes", align="start")),
        (
            "window(s.ts, '12 minutes', '5 minutes', '1 minute')",
            Window("12 minutes", "5 minutes", "1 minute", align="start"),
        ),
        (
            "window(ts, INTERVAL '12' MINUTE, INTERVAL 5 MINUTES)",
            Window("12 minutes", "5 minutes", align="start"),
        ),
        ("window(ts, 100, 10)", Window(100, 10, align="start")),
    ],
)
@pytest.mark.parametrize(
    "bounds",
    [
        "",
        "window, ",
        "window.start, window.end, ",
        "window.start AS window_start, ",
        "window_start, window_end, ",
    ],
)
def test_spark(call: str, window: Window, bounds: str) -> None:
    query = one(f"SELECT {bounds}symbol, count(*) AS n FROM s GROUP BY {call}, symbol")
    assert query.window == window
    assert query.time == "ts"
    assert query.columns == ("window_start", "window_end", "symbol", "n")


def test_spellings_of_one_window_are_equal() -> None:
    """Range 12, slide 5: ends on the slide and starts on the slide differ by an offset of 2.

    ends    ...[---------------)        ends at 5, 10, 15
    starts  ........[---------------)   starts at 0, 5, 10, so ends at 12, 17, 22
    """
    select = "CREATE QUERY q AS SELECT count(*) AS n FROM"
    bracket = one(f"{select} s [RANGE 12 MINUTES SLIDE 5 MINUTES OFFSET 2 MINUTES WATTR ts]")
    hop = one(f"{select} HOP(TABLE s, {HOP})")
    spark = one(f"{select} s GROUP BY window(ts, '12 minutes', '5 minutes')")
    assert bracket == hop == spark
    assert len({bracket, hop, spark}) == 1
    assert bracket.window.phase == hop.window.phase == 2 * MINUTE
    assert hop != one(f"{select} s [RANGE 12 MINUTES SLIDE 5 MINUTES WATTR ts]")


def test_window_is_an_ordinary_name_in_other_spellings() -> None:
    query = one("SELECT window, count(*) AS n FROM s [RANGE 5 SLIDE 5] GROUP BY window")
    assert query.columns == ("window_start", "window_end", "window", "n")
