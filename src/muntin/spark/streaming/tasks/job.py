"""What a task knows of its batch: the record, the plan and the tables, kept from batch to batch."""

from __future__ import annotations

import gc
import json
import os
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

import pyarrow as pa

from muntin.engine.rows.stage_a import StageA
from muntin.engine.tables.relations import Joiner
from muntin.plan import SharedPlan
from muntin.plan.routes import Feed, RoutedPlan
from muntin.plan.shares import homes_in, plan_in
from muntin.spark.streaming.buckets import Buckets
from muntin.spark.streaming.checkpoint.checkpoint import load_plan, load_row_plan, load_table
from muntin.spark.streaming.checkpoint.records import BatchRecord
from muntin.spark.streaming.problems import RunError

PROPERTY = "muntin.batch"
CACHE = "MUNTIN_WORKER_CACHE"
_CACHE = 256
_Item = TypeVar("_Item")


@dataclass(frozen=True)
class Job:
    """A batch as its tasks see it; it travels as a local property of Spark's.

    ``files`` are the files of plans and tables by their names. Spark brings them to every
    worker; where that has not happened, they are read where the driver wrote them. ``blocks`` is
    the folder that state is kept in, ``cache`` how many megabytes of it a worker may keep in its
    memory from batch to batch.
    """

    run: str
    record: BatchRecord
    files: dict[str, str]
    blocks: str
    cache: int

    def to_text(self) -> str:
        """The job as text, without what tasks have no use for."""
        record = replace(self.record, offsets=(), arrivals=())
        return json.dumps({**vars(self), "record": record.to_content()})

    @classmethod
    def of_text(cls, text: str) -> Job:
        """The job that `to_text` wrote."""
        held = json.loads(text)
        return cls(**{**held, "record": BatchRecord.of_content(held["record"])})

    def plan(self, name: str) -> SharedPlan:
        """A plan of this job."""
        return _plans.get((self.run, name), lambda: load_plan(self._path(name)))

    def plan_in(self, name: str, bucket: int, buckets: int) -> SharedPlan:
        """A plan of this job as one of a stream's buckets runs it.

        Most buckets are home to nothing, and run the same one.
        """
        plan = self.plan(name)
        key = (self.run, name, homes_in(plan, bucket, buckets))
        return _own_plans.get(key, lambda: plan_in(plan, bucket, buckets))

    def row_plan(self, name: str) -> RoutedPlan:
        """A plan of queries over rows of this job."""
        return _row_plans.get((self.run, name), lambda: load_row_plan(self._path(name)))

    def buckets(self, streams: Buckets) -> Buckets:
        """The buckets of this batch, given those of the streams."""
        return streams if self.record.row_plan is None else streams.with_rows

    def stage_a(self, plan: str) -> StageA:
        """Stage A of a plan, with this job's tables."""
        key = (self.run, plan, *sorted(self.record.tables.items()))
        return _stages.get(key, lambda: StageA(self.plan(plan), self._tables()))

    def joiner(self, feed: Feed) -> Joiner:
        """What joins the rows of a feed with this job's tables."""
        assert feed.relation is not None
        relation = feed.relation
        key = (self.run, feed.name, feed.columns, *sorted(self.record.tables.items()))
        return _joiners.get(key, lambda: Joiner(relation, self._tables(), feed.columns))

    def _tables(self) -> dict[str, pa.Table]:
        return {name: self._table(version) for name, version in self.record.tables.items()}

    def _table(self, version: str) -> pa.Table:
        return _tables.get((self.run, version), lambda: load_table(self._path(version)))

    def _path(self, name: str) -> Path:
        from pyspark import SparkFiles  # noqa: PLC0415  imported in workers only

        written = Path(self.files[name])
        shipped = Path(SparkFiles.get(written.name))
        return shipped if shipped.exists() else written


def worker_cache() -> int:
    """How many megabytes of state a worker may keep in its memory, by ``MUNTIN_WORKER_CACHE``.

    With 0 it reads what it needs in every batch anew.
    """
    given = os.environ.get(CACHE, "")
    if not given:
        return _CACHE
    if not given.isascii() or not given.isdigit():
        raise RunError(
            f"{CACHE} is {given!r}", hint="give whole megabytes, as in 512, or 0 for no cache"
        )
    return int(given)


def current_job() -> Job:
    """The job of the task that runs."""
    text = task_context().getLocalProperty(PROPERTY)
    return _jobs.get(text, lambda: Job.of_text(text))


def task_context() -> Any:
    """Spark's context of the task that runs."""
    from pyspark import TaskContext  # noqa: PLC0415  imported in workers only

    return TaskContext.get()


# Tasks of a worker after which what was set aside is looked through once more.
_LOOKS = 256


class _Rest:
    """Takes what stays in a worker out of the reach of Python's garbage collector.

    Spark has a worker collect garbage after every task, and the next task waits: with a large
    plan, longer than a small batch takes. What is made in the first tasks stays, more or less,
    so it is set aside after the first task of a plan, and after twice as many tasks each time.
    What was set aside before stays there, with all that the process was forked with: to look
    through that takes longer than a batch, and copies the pages that workers share. Cycles of
    objects that were dropped from it wait for the next look.
    """

    def __init__(self) -> None:
        self._tasks = self._since = 0

    def begin(self) -> None:
        self._tasks = 0

    def end_task(self) -> None:
        self._tasks += 1
        self._since += 1
        if self._tasks & (self._tasks - 1) == 0:
            if self._since >= _LOOKS:
                self._since = 0
                gc.unfreeze()
            gc.collect()
            gc.freeze()


_rest = _Rest()


def end_task() -> None:
    """Say that a task of this worker is about to end."""
    _rest.end_task()


class _Kept(Generic[_Item]):
    """The items used last, by key."""

    def __init__(self, size: int, *, lasting: bool = True) -> None:
        self._size, self._lasting = size, lasting
        self._items: OrderedDict[Hashable, _Item] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], _Item]) -> _Item:
        if key not in self._items:
            self._items[key] = make()
            if self._lasting:
                _rest.begin()
            if len(self._items) > self._size:
                self._items.popitem(last=False)
        self._items.move_to_end(key)
        return self._items[key]


# A worker serves many tasks: what is costly to make is made once for each plan. Everything kept
# is named by its content. There is a plan for each stream, and the one before it.
_jobs: _Kept[Job] = _Kept(2, lasting=False)
_plans: _Kept[SharedPlan] = _Kept(32)
_own_plans: _Kept[SharedPlan] = _Kept(64)
_row_plans: _Kept[RoutedPlan] = _Kept(4)
_tables: _Kept[pa.Table] = _Kept(8)
_stages: _Kept[StageA] = _Kept(32)
_joiners: _Kept[Joiner] = _Kept(8)
