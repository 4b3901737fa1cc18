"""What Spark needs ahead: kernels of its workers, and an archive of its JVM's classes."""

from __future__ import annotations

import tempfile
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq

from muntin.api import run
from muntin.plan import Timeline
from muntin.planner import Draft, Moment, Replanner, build_plan
from muntin.queries import queries as read_queries
from muntin.warm.plans import WINDOWS, many_queries
from muntin.warm.rows import BEGIN, MINUTE, TYPES, synthetic_rows
from muntin.warm.streams import STREAMED

_PATIENCE = 300  # seconds
_SPREAD = ("count(DISTINCT {0})", "top_k({0}, 2)", "frequent({0}, 0.1)")
_SUMS = ("sum(DISTINCT double) AS v", "avg(DISTINCT decimal) AS v", "sum(DISTINCT bigint) AS v")


def stages() -> None:
    """What Spark's workers do, in this process: partials packed, split, unpacked and merged."""
    if find_spec("pyspark") is None:
        return
    from muntin.engine.rows.stage_a import StageA  # noqa: PLC0415  they bring numba
    from muntin.engine.state import State  # noqa: PLC0415
    from muntin.engine.wire import from_bytes, split, to_bytes  # noqa: PLC0415
    from muntin.planner.placement.homes import with_homes  # noqa: PLC0415
    from muntin.spark.bounded.shipped import Shipped, packed  # noqa: PLC0415
    from muntin.spark.bounded.tasks import finish, fold  # noqa: PLC0415

    rows = synthetic_rows(3000)
    calls = [
        f"SELECT {c} AS v FROM t {WINDOWS[0]}{by}"
        for c in STREAMED
        for by in ("", " GROUP BY string", " GROUP BY g, boolean")
    ]
    plan = build_plan(list(read_queries([*many_queries(), *calls])), rows.schema, "ts")
    for buckets in (1, 2):
        shared = with_homes(plan, buckets)
        data = SimpleNamespace(value=packed(shared, {}))
        shipped = Shipped(data, f"warm {buckets}", buckets)
        halves = [rows.slice(0, 1500), rows.slice(1500)]
        messages = [batch for half in halves for batch in fold(shipped, [half])]
        list(finish(shipped, messages))
        state = State(shared)
        for half in halves:
            partials = StageA(shared, {})(half).partials
            for some in split(shared, list(partials), buckets).values():
                state.take(from_bytes(shared, to_bytes(some, "lz4")), None)
            state.seen = BEGIN + 60 * MINUTE
            state.advance(state.seen)
            state = State.restore(shared, state.snapshot())[0]
    _spread_values(rows)


def _spread_values(rows: pa.Table) -> None:
    """Values of every type in two buckets by their hash, and what the driver makes of shares."""
    from muntin.engine.answers.shares import ShareMerger, take_shares  # noqa: PLC0415  as above
    from muntin.engine.rows.stage_a import StageA  # noqa: PLC0415
    from muntin.engine.state import State  # noqa: PLC0415
    from muntin.engine.wire import from_bytes, split, to_bytes  # noqa: PLC0415
    from muntin.plan.shares import plan_in  # noqa: PLC0415
    from muntin.spark.streaming.reports import packed_share, unpacked_share  # noqa: PLC0415

    calls = [f"{call.format(name)} AS v{n}" for call in _SPREAD for n, name in enumerate(TYPES)]
    texts = [f"SELECT {call} FROM t {window}" for call in calls for window in WINDOWS]
    choices = Draft((), rows.schema, Timeline.of(rows.schema, "ts"))
    asked = list(read_queries([*texts, *(f"SELECT {each} FROM t {WINDOWS[0]}" for each in _SUMS)]))
    plan = Replanner(choices, buckets=2).plan(asked, {}, Moment())
    states = [State(plan_in(plan, bucket, 2)) for bucket in range(2)]
    for start in range(0, rows.num_rows, 1000):
        output = StageA(plan)(rows.slice(start, 1000))
        shares = {}
        for bucket, partials in split(plan, output.partials, 2).items():
            states[bucket].keep_logs()
            states[bucket].take(from_bytes(plan, to_bytes(partials)), int(output.ticks.max()))
            found = take_shares(plan, states[bucket].advance(int(output.ticks.max()) - MINUTE))
            shares[bucket] = {
                key: unpacked_share(packed_share(each)) for key, each in found.items()
            }
        ShareMerger(plan, 2)(shares)


def record_classes() -> bool:
    """Have a JVM record the classes that it loads for a stream; whether it did.

    One does so for all later sessions of a machine (`muntin.spark.environment.archive`), which
    then start, and run their first batch, in less than half the time.
    """
    from muntin import sinks  # noqa: PLC0415  as above
    from muntin.spark import session, stop  # noqa: PLC0415
    from muntin.spark.environment.archive import RECORDING  # noqa: PLC0415
    from muntin.spark.environment.settings import JVM_OPTIONS  # noqa: PLC0415

    # Classes are loaded, whatever is made of them: the quicker compiler of the two does.
    quick = {JVM_OPTIONS: "-XX:TieredStopAtLevel=1"}
    started = session("muntin-warm", master="local[1]", config=quick)
    try:
        if RECORDING not in started.sparkContext.getConf().get(JVM_OPTIONS, ""):
            return False
        with tempfile.TemporaryDirectory(prefix="muntin-warm-") as name:
            folder = Path(name)
            (folder / "in").mkdir()
            rows = synthetic_rows(60).select(["ts", "k", "g", "double"])
            pq.write_table(rows, folder / "in" / "rows.parquet")
            reader = started.readStream.schema("ts timestamp, k string, g bigint, double double")
            stream = run(
                reader.parquet(str(folder / "in")),
                f"SELECT k, sum(double) AS v FROM t {WINDOWS[0]} GROUP BY k",
                time="ts",
                sink=sinks.parquet(folder / "out"),
                checkpoint=folder / "checkpoint",
                trigger="available_now",
            )
            stream.await_termination(_PATIENCE)
            stream.stop()
        return True
    finally:
        stop(started)
