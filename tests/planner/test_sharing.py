"""Plans that an optimizer made give the answers of plans that share everything."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import muntin
from engine.rich_queries import rich_queries, rich_stream
from muntin.errors import MuntinError
from muntin.plan import SharedPlan, Timeline
from muntin.planner import Draft, build_plan
from muntin.planner.sharing import OPTIMIZERS, STEPS_PER_ROW, Optimizer, OptimizerName
from muntin.planner.steps.bind import bind
from muntin.planner.steps.weigh import weighs_rate
from muntin.queries import queries
from muntin.streams import LiveEngine
from muntin.testing import rows_of

SCHEMA = pa.schema({"t": pa.int64(), "v": pa.int64()})
SLIDES = (97, 89, 83, 79, 73)


def windows(*slides: int, call: str = "max(v)") -> str:
    return ";".join(
        f"CREATE QUERY w{slide} AS SELECT {call} AS a FROM s [RANGE {3 * slide} SLIDE {slide}]"
        for slide in slides
    )


# With a row worth this little, windows that share few edges are in trees of their own.
CHEAP_ROWS = 0.01


def plan_of(
    sql: str,
    rate: float | None,
    previous: SharedPlan | None = None,
    steps_per_row: float = STEPS_PER_ROW,
    method: OptimizerName = "auto",
) -> SharedPlan:
    optimizer = Optimizer(method, rate, steps_per_row)
    return build_plan(queries(sql), SCHEMA, "t", sharer=optimizer, previous=previous)


def test_a_fine_slide_among_coarse_windows_has_its_own_tree_unless_rows_are_many() -> None:
    coarse = ";".join(
        f"CREATE QUERY c{overlap} AS SELECT max(v) AS a FROM s [RANGE {8 * overlap} SLIDE 8]"
        for overlap in range(2, 26)
    )
    sql = f"{windows(1)};{coarse}"
    owned = {slicing.owner: len(slicing.windows) for slicing in plan_of(sql, rate=1.0).slicings}
    assert sorted(owned.values()) == [1, 24]
    # Slices without rows are not stepped over: ever fewer rows change nothing.
    assert len(plan_of(sql, rate=0.0001).slicings) == 2
    dense = plan_of(sql, rate=100.0)
    assert len(dense.slicings) == 1
    assert dense.why.startswith("one tree for all takes")
    assert len(plan_of(sql, rate=None).slicings) == 1


def test_what_a_row_is_worth_decides() -> None:
    assert len(plan_of(windows(*SLIDES), rate=0.05).slicings) == 1
    assert len(plan_of(windows(*SLIDES), rate=0.05, steps_per_row=CHEAP_ROWS).slicings) == 5


def test_a_rate_is_asked_for_only_where_it_matters() -> None:
    def asks(sql: str, optimizer: Optimizer, **options: Any) -> bool:
        timeline = Timeline.of(SCHEMA, "t")
        return weighs_rate(bind(Draft(queries(sql), SCHEMA, timeline, sharer=optimizer, **options)))

    same = windows(97) + ";CREATE QUERY b AS SELECT sum(v) FROM s [RANGE 291 SLIDE 97]"
    several = windows(97, 89)
    assert not asks(same, Optimizer())
    assert asks(several, Optimizer())
    assert asks(several, Optimizer(), strategy="shards")
    assert not asks(several, Optimizer(), strategy="unshared")
    assert not asks(several, Optimizer("all_share"))
    assert not asks(several, Optimizer(rate=1.0))
    assert not asks(several.replace("RANGE", "ROWS"), Optimizer())


def test_a_rate_that_is_told_is_taken_before_one_that_is_measured() -> None:
    def plan(rate: float | None, told: float | None) -> SharedPlan:
        asked = queries(windows(*SLIDES))
        return build_plan(asked, SCHEMA, "t", rate=rate, sharer=Optimizer("auto", told))

    assert plan(5.0, None).weighed == plan(None, 5.0).weighed == plan(7.0, 5.0).weighed
    assert plan(7.0, None).weighed != plan(5.0, None).weighed
    assert plan(None, None).weighed is None


def test_queries_that_run_stay_in_their_trees_unless_auto_decides() -> None:
    first = plan_of(windows(*SLIDES), rate=0.05, steps_per_row=CHEAP_ROWS)
    assert len(first.slicings) == 5
    joined = plan_of(windows(*SLIDES, 194), 100.0, first, method="weave_share")
    owner = {
        final.name: joined.slicings[joined.partials[final.partials].slicing].owner
        for final in joined.finals
    }
    for final in first.finals:
        node = first.partials[final.partials]
        assert owner[final.name] == first.slicings[node.slicing].owner
        number = joined.partials[joined.finals[first.finals.index(final)].partials].number
        assert number == node.number
    # Its edges are all among those of one that runs.
    assert owner["w194"] == owner["w97"]


@pytest.mark.parametrize("seed", range(6))
def test_every_optimizer_gives_the_same_answers(seed: int) -> None:
    rng = random.Random(9300 + seed)
    table = rich_stream(rng, most=80, scale=1)
    sql = ";\n".join(query.sql for query in rich_queries(rng, most=7, scale=1))
    found = {name: muntin.aggregate(table, sql, time="t", optimizer=name) for name in OPTIMIZERS}
    for name, results in found.items():
        for query in results:
            expected = list(map(repr, rows_of(found["all_share"][query])))
            assert list(map(repr, rows_of(results[query]))) == expected, (name, query)


@pytest.mark.parametrize("seed", range(4))
def test_queries_that_join_an_optimized_stream_change_no_other(seed: int) -> None:
    rng = random.Random(9400 + seed)
    size = 600
    times = sorted(rng.randrange(3000) for _ in range(size))
    table = pa.table({"t": times, "v": [rng.randrange(100) for _ in range(size)]})
    first = plan_of(windows(*SLIDES), rate=0.05, steps_per_row=CHEAP_ROWS)
    alone = LiveEngine(plan_of(windows(*SLIDES), rate=None), 0)
    joined = LiveEngine(first, 0)
    answers: dict[str, list[str]] = {}
    expected: dict[str, list[str]] = {}
    for number, batch in enumerate(table.to_batches(max_chunksize=100)):
        if number == 2:
            joined.add(queries("CREATE QUERY late AS SELECT min(v) FROM s [RANGE 71 SLIDE 71]")[0])
        for engine, lines in ((joined, answers), (alone, expected)):
            for name, rows in engine.feed(batch).items():
                lines.setdefault(name, []).extend(map(repr, rows_of(rows)))
    assert answers.pop("late")
    assert answers == expected


def test_an_unknown_optimizer_and_an_impossible_rate_are_refused() -> None:
    with pytest.raises(MuntinError, match="there is no optimizer 'best'"):
        muntin.aggregate(pa.table({"t": [1], "v": [2]}), windows(5), "t", optimizer="best")  # type: ignore[arg-type]
    with pytest.raises(MuntinError, match="rate must be 0 or more"):
        Optimizer(rate=-1.0)
