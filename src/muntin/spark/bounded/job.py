"""The one Spark job that answers all queries over bounded input."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from muntin.errors import MuntinError
from muntin.plan.nodes import SharedPlan
from muntin.planner.placement.homes import with_homes
from muntin.results import Answer, Outcome
from muntin.spark.bounded.messages import ERROR, LIMITS, RESULTS_DDL, Chunk, Part, parts_of
from muntin.spark.bounded.results import KeptAnswer, KeptResults, SmallAnswer, release_forgotten
from muntin.spark.bounded.shipped import Shipped, ship
from muntin.spark.bounded.tasks import finish
from muntin.spark.problems import SparkError, worker_trouble

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def run_job(
    session: SparkSession,
    plan: SharedPlan,
    tables: Mapping[str, pa.Table],
    stage_a: Callable[[Shipped], DataFrame],
    *,
    buckets: int | None = None,
) -> Outcome:
    """Run both stages, and gather what the results are; large ones stay on the executors.

    ``stage_a`` makes the frame of messages, ``buckets`` is how many ways groups are spread.
    """
    release_forgotten()
    if buckets is not None or not plan.placement:
        plan = with_homes(plan, buckets or cores_of(session))
    count = buckets or _buckets(session, plan)
    shipped = ship(session, plan, tables, count, LIMITS)
    messages = stage_a(shipped)
    # By its place, not by hash: every bucket has a task of its own, and AQE merges none.
    spread = messages.repartitionById(count, "bucket")
    frame = spread.mapInArrow(partial(finish, shipped), RESULTS_DDL).persist()
    kept = KeptResults(frame, shipped.broadcast)
    try:
        rows = frame.select("kind", "note", "queries", "counts", "small").toArrow()
        outcome = _read(session, plan, rows, kept)
    except BaseException as error:
        kept.release()
        if trouble := worker_trouble(str(error)):
            raise SparkError(trouble[0], hint=trouble[1]) from error
        raise
    return outcome


def cores_of(session: SparkSession) -> int:
    """As many tasks as run at once."""
    return int(session.sparkContext.defaultParallelism)


def _buckets(session: SparkSession, plan: SharedPlan) -> int:
    """As many as tasks run at once; fewer where there are no groups, and few trees are placed."""
    if any(node.grouping for node in plan.partials):
        return cores_of(session)
    return max((node.home or 0 for node in plan.partials), default=0) + 1


def _read(session: SparkSession, plan: SharedPlan, rows: pa.Table, kept: KeptResults) -> Outcome:
    outcome, errors, seconds = Outcome({}), Counter[str](), Counter[str]()
    parts: dict[int, list[Part]] = {}
    large: set[int] = set()
    for kind, note, queries, counts, data in zip(
        *(column.to_pylist() for column in rows.columns), strict=True
    ):
        if kind == ERROR:
            raise _error(note)
        if kind is not None:
            counted = json.loads(note)
            outcome.rows += counted.get("rows", 0)
            outcome.bad_rows += counted.get("bad_rows", 0)
            errors.update(counted["errors"])
            seconds.update(counted["seconds"])
            continue
        if data is None:
            large.update(queries)
        for place, part in parts_of(Chunk(queries, counts, data or b"")):
            parts.setdefault(place, []).append(part)
    outcome.errors, outcome.seconds = errors, seconds
    answers: dict[str, Answer] = {}
    for place, final in enumerate(plan.finals):
        schema, own = partial(plan.result_schema, final), tuple(parts.get(place, ()))
        if place in large:
            answers[final.name] = KeptAnswer(kept, place, schema(), sum(p.count for p in own))
        else:
            answers[final.name] = SmallAnswer(session, schema, own)
    outcome.answers = answers
    if not large:
        kept.release()
    return outcome


def _error(note: bytes) -> MuntinError:
    error = pickle.loads(note)
    assert isinstance(error, MuntinError)
    return error
