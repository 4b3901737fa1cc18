"""Hot keys that are split: when a key turns hot and cold, and what its rows wait for."""

from __future__ import annotations

import pyarrow as pa
import pytest

from muntin.expressions.binding.bound import whole_column
from muntin.operators.feeds import FeedSplitter, gathered_feeds
from muntin.operators.hot_keys import Key, KeyCounts
from muntin.operators.splits import (
    Heat,
    Lanes,
    Reached,
    SplitKey,
    advanced,
    begun,
    decided,
    lanes_of,
)
from muntin.operators.state.keys import hash_columns
from muntin.plan.routes import Feed, SplitGroup

#  rows of a live for 10 ticks, those of b for 4
JOIN = SplitGroup("a and b", ("a1", "b1"), ("a", "b"), ("a", "b"), (10, 4), (0, 1))
EXISTS = SplitGroup("a, b", ("a2", "b2"), ("a", "b"), ("a", "b"), (10, 4), (0,))
SEVEN = Key("7", 70)


def at(a: tuple[int | None, int | None], b: tuple[int | None, int | None]) -> dict[str, Reached]:
    """The largest times of both streams, and their watermarks."""
    return {"a": Reached(*a), "b": Reached(*b)}


def test_a_key_is_split_once_rows_that_were_not_copied_have_ended() -> None:
    #   b up to 20 is in one bucket:  20 ····· 24
    #   a may be spread from W = 24 on:        |────
    found = begun(JOIN, SEVEN, 0, at((30, 22), (20, 20)))
    assert found == SplitKey("a and b", "7", 70, 0, "copying", 24)
    for times in (at((40, 23), (40, 40)), at((40, 40), (24, 23))):
        assert advanced(JOIN, found, times, is_hot=True) == found
    split = advanced(JOIN, found, at((40, 24), (40, 24)), is_hot=True)
    assert split is not None
    assert split.phase == "split"


def test_a_key_is_whole_again_once_spread_rows_and_copies_have_ended() -> None:
    split = SplitKey("a and b", "7", 70, 0, "split")
    #   a up to 50 is spread:  50 ·········· 60
    ending = advanced(JOIN, split, at((50, 50), (48, 48)), is_hot=False)
    assert ending == SplitKey("a and b", "7", 70, 0, "ending", 60)
    assert advanced(JOIN, ending, at((59, 59), (70, 70)), is_hot=False) == ending
    # It may turn hot again meanwhile: rows of b are copied still.
    again = advanced(JOIN, ending, at((59, 59), (70, 70)), is_hot=True)
    assert again is not None
    assert again.phase == "split"
    #   b up to 70 is copied:  70 ···· 74
    clearing = advanced(JOIN, ending, at((61, 61), (70, 60)), is_hot=False)
    assert clearing == SplitKey("a and b", "7", 70, 0, "clearing", 74)
    assert advanced(JOIN, clearing, at((80, 80), (80, 73)), is_hot=False) == clearing
    assert advanced(JOIN, clearing, at((80, 80), (80, 74)), is_hot=False) is None
    # Nothing of b was copied since 70.
    copying = advanced(JOIN, clearing, at((80, 80), (80, 73)), is_hot=True)
    assert copying == SplitKey("a and b", "7", 70, 0, "copying", 84)


def test_streams_without_rows_are_not_waited_for() -> None:
    found = begun(JOIN, SEVEN, 0, at((30, 30), (None, None)))
    assert found.phase == "split"


@pytest.mark.parametrize(
    ("group", "shares", "spread"),
    [
        (JOIN, (0.3, 0.0), 0),
        (JOIN, (0.1, 0.2), 1),
        (JOIN, (0.1, 0.1), None),
        (EXISTS, (0.2, 0.1), 0),
        # Copies of b would cost more than is gained.
        (EXISTS, (0.1, 0.2), None),
    ],
)
def test_the_largest_side_is_spread_if_it_may_be(
    group: SplitGroup, shares: tuple[float, ...], spread: int | None
) -> None:
    times = at((30, 30), (30, 30))
    found = decided([group], (), times, {group.name: Heat({SEVEN: shares})}, 2)
    assert [each.spread for each in found] == ([] if spread is None else [spread])
    assert not decided([group], (), times, {group.name: Heat({SEVEN: shares})}, 1)


def test_a_key_stays_split_while_it_is_warm_or_nothing_is_known() -> None:
    split = (SplitKey("a and b", "7", 70, 0, "split"),)
    times = at((30, 30), (30, 30))
    warm, cold, other = (Heat({SEVEN: each}) for each in ((0.15, 0.0), (0.1, 0.0), (0.1, 0.4)))
    for heat, phase in (
        (warm, "split"),
        (Heat({}, is_known=False), "split"),
        (cold, "ending"),
        (Heat({}), "ending"),
        (other, "ending"),
    ):
        [found] = decided([JOIN], split, times, {"a and b": heat}, 2)
        assert found.phase == phase
    # A query that leaves takes its keys along.
    assert decided([EXISTS], split, times, {EXISTS.name: warm}, 2) == ()


def test_shares_are_those_of_all_rows_of_the_group() -> None:
    counts = KeyCounts()
    counts.add({SEVEN: 500}, 1000)
    few = KeyCounts()
    few.add({SEVEN: 9}, 9)
    heat = Heat.of([counts, few], [3000, 1000])
    assert heat == Heat({SEVEN: (0.375, 0.0)})
    assert not Heat.of([few, None], [9, 1]).is_known


def test_phases_say_which_rows_leave_their_bucket() -> None:
    def lanes(phase: str, clock: str) -> Lanes:
        split = SplitKey("a and b", "7", 70, 0, phase)  # type: ignore[arg-type]
        return lanes_of([split], [EXISTS, JOIN], clock, 2)

    assert lanes("split", "a1") == Lanes(2, (), (70,))
    assert lanes("split", "b1") == Lanes(2, (70,), ())
    for phase in ("copying", "ending"):
        assert lanes(phase, "a1") == Lanes(2)
        assert lanes(phase, "b1") == Lanes(2, (70,), ())
    assert lanes("clearing", "b1") == Lanes(2)
    assert lanes("split", "a2") == Lanes(2)


def test_rows_are_copied_to_some_buckets_or_spread_over_them() -> None:
    schema = pa.schema({"ts": pa.int64(), "id": pa.int64(), "tags": pa.list_(pa.string())})
    rows = pa.table({"ts": range(100), "id": [7] * 99 + [8], "tags": [["x"]] * 100}, schema)
    feed = Feed("s", "s", "s", (whole_column(schema.field("id")),), *(("ts", "id", "tags"),) * 2)
    hashed = tuple(hash_columns((rows["id"].combine_chunks().slice(0, 1),), 1)[0].tolist())

    def sent(lanes: Lanes) -> dict[int, pa.Table]:
        splitter = FeedSplitter(feed, 4, lanes)
        splitter.take(rows.slice(0, 60))
        splitter.take(rows.slice(60))
        return {
            bucket: gathered_feeds([{"s": data}])["s"]
            for bucket, data in splitter.packets().items()
        }

    def sevens(found: dict[int, pa.Table]) -> list[int]:
        return [each["id"].to_pylist().count(7) for each in found.values()]

    assert max(sevens(sent(Lanes(3)))) == 99
    copied = sent(Lanes(3, copied=hashed))
    assert sorted(sevens(copied))[-3:] == [99, 99, 99]
    spread = sent(Lanes(3, spread=hashed))
    assert sum(sevens(spread)) == 99
    assert sorted(sevens(spread))[-3] > 20
    assert sum(each.num_rows for each in spread.values()) == 100
    # More lanes than buckets are as many.
    assert sevens(sent(Lanes(9, copied=hashed))) == [99] * 4
