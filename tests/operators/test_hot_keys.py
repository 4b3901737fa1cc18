"""Keys that most rows have: counted from samples, older rows less and less."""

from __future__ import annotations

import pyarrow as pa

import muntin
from muntin.operators.hot_keys import Key, KeyCounts

ORDERS = {"ts": "int64", "id": "int64", "total": "int64"}


def rows(*ids: int | None) -> pa.Table:
    """Orders, one a tick."""
    count = len(ids)
    return pa.table([range(count), list(ids), [1] * count], pa.schema(ORDERS))


def test_progress_names_the_hottest_keys_of_joined_streams() -> None:
    joined = "FROM a [RANGE 9 SLIDE 3] JOIN b [RANGE 9] ON a.id = b.id"
    stream = muntin.stream(
        f"CREATE QUERY q AS SELECT count(*) AS n {joined};"
        "CREATE QUERY p AS SELECT a.id FROM a [RANGE 9] JOIN c [RANGE 9] ON a.total = c.total;"
        "CREATE QUERY alone AS SELECT count(*) AS n FROM c [RANGE 3 SLIDE 3]",
        {"a": ORDERS, "b": ORDERS, "c": ORDERS},
    )
    assert stream.progress().hot_keys == {}
    stream.feed(rows(7, 7, 7, 1, 2, 2, None, 3), "a")
    stream.feed(rows(4, 5, 6), "b")
    found = stream.progress().hot_keys
    assert found["a by id"] == (("7", 3 / 8), ("2", 2 / 8))
    assert found["a by total"] == (("1", 1.0),)
    # Nothing comes twice there, and c meets rows by its total only.
    assert set(found) == {"a by id", "a by total"}
    stream.remove("p")
    assert set(stream.progress().hot_keys) == {"a by id"}


def test_older_rows_count_less_and_rare_keys_are_forgotten() -> None:
    counts = KeyCounts()
    for _ in range(100):
        counts.add({Key("old", 1): 900, Key("other", 2): 100}, 1000)
    for number in range(400):
        counts.add({Key("new", 3): 900, Key(f"rare {number}", number): 1}, 1000)
    assert counts.hottest(1)[0].key == "new"
    assert counts.hottest(1)[0].share > 0.8
    assert len(counts.hottest(1000)) < 300
