"""Charts of results: what is drawn where, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import muntin
from muntin import charts
from muntin.cli.screen.charts import Charts
from muntin.errors import DataError, MuntinError, UnknownQueryError
from muntin.sinks import with_key
from muntin.testing import trades

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _figures_go() -> Iterator[None]:
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def drawn(axes: Any) -> dict[str, list[float]]:
    """The heights of all lines by their labels."""
    return {line.get_label(): list(line.get_ydata()) for line in axes.lines}


def test_a_line_for_each_group_and_windows_on_the_axis() -> None:
    data = pa.table({"ts": [1, 6, 11, 12], "k": ["a", "b", "a", None], "v": [1, 2, 3, 4]})
    sql = "CREATE QUERY by_k AS SELECT k, sum(v) AS total FROM t [RANGE 5 SLIDE 5] GROUP BY k"
    axes = muntin.aggregate(data, sql, time="ts").plot("BY_K")
    assert (axes.get_title(), axes.get_ylabel(), axes.get_xlabel()) == (
        "by_k", "total", "window_end",
    )  # fmt: skip
    assert list(axes.lines[0].get_xdata()) == [5, 10, 15]
    nan = np.nan
    expected = {"NULL": [nan, nan, 4], "a": [1, nan, 3], "b": [nan, 2, nan]}
    assert drawn(axes).keys() == expected.keys()
    for label, heights in expected.items():
        np.testing.assert_array_equal(drawn(axes)[label], heights)
    assert axes.get_legend().get_title().get_text() == "k"


def test_a_chart_for_each_aggregate() -> None:
    sql = (
        "CREATE QUERY q AS SELECT max(price) AS top, count(*) AS n, first(symbol) AS s,"
        " bool_or(vol > 900) AS large FROM t [RANGE '20 minutes' SLIDE '10 minutes']"
    )
    results = muntin.aggregate(trades(500), sql, time="ts")
    top, n, large = results.plot("q")
    assert (top.get_ylabel(), n.get_ylabel(), large.get_ylabel()) == ("top", "n", "large")
    assert top.get_legend() is None
    assert large.get_xlabel() == "window_end (UTC)"
    (heights,) = drawn(n).values()
    assert heights == results["q"]["n"].to_pylist()
    ends = np.array(results["q"]["window_end"].to_numpy(), "datetime64[us]")
    np.testing.assert_array_equal(n.lines[0].get_xdata(), ends)
    assert set(next(iter(drawn(large).values()))) <= {0.0, 1.0}


def test_of_many_groups_the_largest_are_drawn() -> None:
    size = 2 * charts.MOST_LINES
    data = pa.table({"ts": [1] * size, "k": range(size), "v": range(size)})
    sql = "SELECT k, sum(v) AS total FROM t [RANGE 5 SLIDE 5] GROUP BY k"
    axes = muntin.aggregate(data, sql, time="ts").plot("q1")
    assert drawn(axes).keys() == set(map(str, range(charts.MOST_LINES, size)))
    assert axes.get_legend().get_title().get_text() == "k, 10 of 20"


@pytest.mark.parametrize(
    ("ends", "values"),
    [
        (pa.array([5, 10], pa.date32()), pa.array([1.5, None])),
        (pa.array([5, 10], pa.timestamp("ns", "America/New_York")), pa.array([1, 2], pa.uint8())),
        (pa.array([5, 10], pa.timestamp("us", "+02:00")), pa.array([Decimal("1.50"), None])),
    ],
)
def test_other_types(ends: pa.Array, values: pa.Array, tmp_path: Path) -> None:
    table = pa.table({"window_start": ends, "window_end": ends, "v": values})
    axes = charts.draw(table, "q", 0)
    axes.figure.savefig(tmp_path / "q.png")
    (heights,) = drawn(axes).values()
    wanted = [np.nan if each is None else float(each) for each in values.to_pylist()]
    np.testing.assert_array_equal(heights, wanted)


def test_a_result_without_rows_is_drawn_empty() -> None:
    sql = "SELECT symbol, max(price) AS p FROM t [RANGE '1 h' SLIDE '1 h'] GROUP BY symbol"
    axes = muntin.aggregate(trades(5).slice(5), sql, time="ts").plot("q1")
    assert drawn(axes) == {}


def test_axes_of_ones_own() -> None:
    import matplotlib.pyplot as plt

    _, (left, right) = plt.subplots(1, 2)
    sql = "SELECT count(*) AS n FROM t [RANGE '1 h' SLIDE '1 h']; SELECT count(*), max(vol) FROM t"
    results = muntin.aggregate(trades(50), f"{sql} [RANGE '1 h' SLIDE '1 h']", time="ts")
    assert results.plot("q1", axes=right) is right
    assert right.lines
    assert not left.lines
    with pytest.raises(DataError, match="2 columns of numbers, for 1 axes"):
        results.plot("q2", axes=left)


def test_what_cannot_be_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "SELECT first(symbol) AS s FROM t [RANGE '1 h' SLIDE '1 h']"
    results = muntin.aggregate(trades(50), sql, time="ts")
    with pytest.raises(DataError, match="no column of numbers"):
        results.plot("q1")
    with pytest.raises(UnknownQueryError):
        results.plot("q2")
    assert find_spec("matplotlib") is not None
    monkeypatch.setattr(charts, "find_spec", lambda name: None)
    with pytest.raises(MuntinError, match="charts need matplotlib"):
        results.plot("q1")
    with pytest.raises(MuntinError, match="charts need matplotlib"):
        Charts(Path("charts"))


def test_a_run_is_drawn_when_it_ends(tmp_path: Path) -> None:
    """Batches of two streams have the same numbers, and both are kept."""
    made = Charts(tmp_path / "charts")
    table = pa.table({"start": [0, 0], "end": [5, 5], "k": [1, 2], "n": [3, 4]})
    for stream, name in (("one", "a"), ("two", "b")):
        sink = made.sink(stream)
        sink.declare({name: with_key(table.schema, ["start", "end", "k"]), "none": table.schema})
        sink.commit(0, sink.writer().write(0, 0, {name: table}))
    told = made.save()
    assert told[0] == f"wrote {tmp_path / 'charts' / 'a.png'}"
    assert "none is not drawn: it has no results" in told
    assert {path.name for path in (tmp_path / "charts").iterdir()} == {"a.png", "b.png"}
    (tmp_path / "charts" / "a.png").unlink()
    (tmp_path / "charts" / "a.png").mkdir()
    with pytest.raises(MuntinError, match=r"a\.png cannot be written"):
        made.save()
