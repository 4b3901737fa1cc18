"""Bounded input on Spark: a source of rows, and what is refused there."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from muntin.engine import SAMPLE_ROWS
from muntin.errors import AggregateError, WindowError
from muntin.expressions.zones import Zone
from muntin.plan.nodes import SharedPlan
from muntin.planner import Draft
from muntin.planner.placement.homes import with_homes
from muntin.results import Outcome
from muntin.spark.bounded.job import cores_of, run_job
from muntin.spark.bounded.messages import MESSAGES_DDL
from muntin.spark.bounded.tasks import fold_rows
from muntin.spark.environment.interpreter import require_interpreter
from muntin.spark.environment.zones import session_zone
from muntin.spark.frames import arrow_schema, check_bounded, quoted, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# A sample of a frame with more columns costs more than what it is good for.
_SAMPLED_COLUMNS = 64
_SAMPLED_TEXT = 256
# The first rows of other plans than these may take as long as all of them.
_CHEAP = ("Project", "SubqueryAlias", "LocalRelation", "Range", "LogicalRDD", "InMemoryRelation")


class Source(Protocol):
    """Bounded input that Spark reads."""

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        ...

    @property
    def zone(self) -> Zone:
        """Where the local times are that expressions ask for."""
        ...

    def sample(self) -> pa.Table | None:
        """Some rows, if they are cheap to get."""
        ...

    def restore(self, table: pa.Table) -> DataFrame:
        """A table as a Spark DataFrame."""
        ...

    def placed(self, plan: SharedPlan, method: str | None, draft: Draft) -> SharedPlan:
        """The plan with its trees without groups on buckets."""
        ...

    def run(self, plan: SharedPlan, tables: Mapping[str, pa.Table]) -> Outcome:
        """Answer the queries of a plan."""
        ...


def read_source(data: Any, timezone: str | None = None) -> Source:
    """A bounded Spark DataFrame, or a description of files, as a source.

    Without a time zone, it is that of the session.
    """
    from muntin.spark.files.files import Files  # noqa: PLC0415  it imports this module's neighbours
    from muntin.spark.files.source import FilesSource  # noqa: PLC0415

    if isinstance(data, Files):
        return FilesSource(data, timezone)
    return FrameSource(data, timezone)


class FrameSource:
    """A bounded Spark DataFrame; its rows go from the JVM to the workers as Arrow batches."""

    def __init__(self, frame: DataFrame, timezone: str | None = None) -> None:
        self._frame = check_bounded(frame)
        require_interpreter(frame.sparkSession)
        self.zone = session_zone(frame.sparkSession, timezone)
        self.schema = arrow_schema(frame.schema)
        self._sample: pa.Table | None = None

    def rows(self) -> DataFrame:
        """The DataFrame."""
        return self._frame

    def sample(self) -> pa.Table | None:
        """The first rows, where Spark need not compute others for them."""
        if self._sample is None and self._is_cheap():
            some = self._frame.limit(SAMPLE_ROWS).selectExpr(*map(_shortened, self.schema))
            self._sample = some.toArrow().cast(self.schema)
        return self._sample

    def restore(self, table: pa.Table) -> DataFrame:
        """A table as a Spark DataFrame."""
        return self._frame.sparkSession.createDataFrame(table, spark_schema(table.schema))

    def placed(self, plan: SharedPlan, method: str | None, draft: Draft) -> SharedPlan:
        """The plan with its trees without groups on as many buckets as tasks run at once."""
        cores = cores_of(self._frame.sparkSession)
        return with_homes(plan, cores, method=method, draft=draft)

    def _is_cheap(self) -> bool:
        if len(self.schema) > _SAMPLED_COLUMNS or any(
            pa.types.is_nested(field.type) for field in self.schema
        ):
            return False
        plan = self._frame._jdf.queryExecution().optimizedPlan()  # noqa: SLF001  no other way
        return all(_is_cheap_node(name) for name in _node_names(plan))

    def run(
        self,
        plan: SharedPlan,
        tables: Mapping[str, pa.Table],
        *,
        buckets: int | None = None,
    ) -> Outcome:
        """Answer the queries of a plan; only the columns they read leave the JVM."""
        check_plan(plan)
        # Spark would read a dot in a name as a step into a structure.
        needed = self._frame.selectExpr(
            *(f"{quoted(name)} AS c{place}" for place, name in enumerate(plan.columns()))
        )
        return run_job(
            self._frame.sparkSession,
            plan,
            tables,
            lambda shipped: needed.mapInArrow(partial(fold_rows, shipped), MESSAGES_DDL),
            buckets=buckets,
        )


def check_plan(plan: SharedPlan) -> None:
    """Refuse what needs the rows of all workers in one order."""
    remedy = "or collect the rows with toArrow() and aggregate those"
    if plan.slicing == "cutty":
        raise WindowError(
            "Cutty slices run in the local engine, not on Spark: a window that ends inside one "
            "is read at that very moment, and workers do not see rows in order of time",
            hint=f'use slicing="pairs", {remedy}',
        )
    for slicing in plan.slicings:
        if slicing.measure == "rows" or slicing.timeline != plan.timeline:
            what = "ROWS" if slicing.measure == "rows" else f"WATTR {slicing.timeline.column}"
            raise WindowError(
                f"{what} windows run in the local engine, not on Spark",
                hint=f"use a RANGE of {plan.timeline.column}, {remedy}",
            )
    for final in plan.finals:
        for lowering in final.lowerings:
            if not lowering.aggregate.commutative:
                raise AggregateError(
                    f"{lowering.name} of query {final.name} depends on the order of rows, and "
                    "workers see them in no particular order",
                    hint=f"use first, last, min_by or max_by, {remedy}",
                )


def _shortened(field: pa.Field) -> str:
    """A column of a sample, which weighs choices only: the driver has no room for long texts."""
    name = quoted(field.name)
    if not (pa.types.is_string(field.type) or pa.types.is_binary(field.type)):
        return name
    return f"substring({name}, 1, {_SAMPLED_TEXT}) AS {name}"


def _node_names(plan: Any) -> list[str]:
    children = plan.children()
    found = [str(plan.nodeName())]
    for place in range(children.size()):
        found += _node_names(children.apply(place))
    return found


def _is_cheap_node(name: str) -> bool:
    return name in _CHEAP or name.startswith(("Relation", "LogicalRelation"))
