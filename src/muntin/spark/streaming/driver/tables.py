"""Static tables that a stream is joined with: each version is kept in the checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from muntin.errors import DataError, did_you_mean
from muntin.frames import is_on_spark, read_tables
from muntin.plan.relations import table_named
from muntin.spark.streaming.checkpoint.checkpoint import Checkpoint, load_table
from muntin.spark.streaming.problems import reason_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class StaticTables:
    """The frames that a user gave, and the version of each that is in use.

    Args:
        given: Frames by name: of Spark, pyarrow, pandas or polars.
        checkpoint: Where versions are kept.
        known: The versions that the checkpoint says are in use; a table that is not given again
            stays as it was.
        timezone: That of the run, in which times of Spark's frames are shown: the session may
            have another one when the run goes on.
    """

    def __init__(
        self,
        given: Mapping[str, Any] | None,
        checkpoint: Checkpoint,
        known: Mapping[str, str],
        timezone: str = "UTC",
    ) -> None:
        self._checkpoint = checkpoint
        self._timezone = timezone
        self._given = dict(given or {})
        read = read_tables(_arrow_frames(given, timezone))
        names = {name.lower() for name in read}
        kept = {name: version for name, version in known.items() if name.lower() not in names}
        self.versions = {name: checkpoint.save_table(table) for name, table in read.items()} | kept
        self.schemas: dict[str, pa.Schema] = {name: table.schema for name, table in read.items()}
        for name, version in kept.items():
            self.schemas[name] = load_table(checkpoint.table_path(version)).schema

    def refresh(self, name: str) -> dict[str, str]:
        """The versions to use after reading a table again."""
        matches = [each for each in self.versions if each.lower() == name.lower()]
        if not matches:
            hint = did_you_mean(name, self.versions) or "give it with tables= at the start"
            raise DataError(f"there is no table {name!r}", hint=hint)
        if matches[0] not in self._given:
            raise DataError(
                f"table {name!r} was not given at this start, so there is nothing to read again",
                hint="start the run with tables= to change it",
            )
        return self.update(matches[0], self._given[matches[0]], is_joined=True)

    def update(self, name: str, frame: Any, *, is_joined: bool) -> dict[str, str]:
        """The versions to use after a table has another frame; a name that is new adds one.

        A table that no query joins may have other columns than before.
        """
        name = table_named(name, self.versions)
        table = read_tables(_arrow_frames({name: frame}, self._timezone))[name]
        if is_joined and table.schema != self.schemas[name]:
            raise DataError(
                f"the columns of table {name!r} have changed",
                hint="replace the queries that join it, with a table of another name",
            )
        version = self._checkpoint.save_table(table)
        self._given[name], self.schemas[name] = frame, table.schema
        return {**self.versions, name: version}


def _arrow_frames(given: Mapping[str, Any] | None, timezone: str) -> Mapping[str, Any] | None:
    """Frames that Arrow's readers know: those of Spark are collected."""
    if not isinstance(given, Mapping):
        return given
    return {
        name: _shown_in(_collected(name, frame, timezone), timezone)
        if is_on_spark(frame)
        else frame
        for name, frame in given.items()
    }


def _collected(name: str, frame: Any, timezone: str) -> pa.Table:
    from py4j.protocol import Py4JError  # noqa: PLC0415  imported when it is used
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        is_frame = hasattr(frame, "sparkSession")
        current = _listed_again(frame) if is_frame else frame.in_zone(timezone)
        return current.toArrow()
    except (PySparkException, Py4JError, FileNotFoundError) as error:
        reason, _ = reason_of(str(error))
        raise DataError(
            f"table {name!r} cannot be read: {reason}",
            hint="a running stream keeps the version it has",
        ) from error


def _shown_in(table: pa.Table, timezone: str) -> pa.Table:
    """The same instants, shown in a zone."""
    fields = [
        field.with_type(pa.timestamp(field.type.unit, timezone))
        if pa.types.is_timestamp(field.type) and field.type.tz
        else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))


def _listed_again(frame: DataFrame) -> DataFrame:
    """The same frame, with the files that there are now: Spark remembers those it found first.

    Where a folder is gone, Spark would find that it has no rows.
    """
    leaves = frame._jdf.queryExecution().analyzed().collectLeaves()  # noqa: SLF001  no other way
    for leaf in map(leaves.apply, range(leaves.size())):
        relation = leaf.relation() if _class(leaf) == "LogicalRelation" else None
        if relation is None or _class(relation) != "HadoopFsRelation":
            continue
        relation.location().refresh()
        roots = relation.location().rootPaths()
        settings = relation.sparkSession().sessionState().newHadoopConf()
        for root in map(roots.apply, range(roots.size())):
            if not root.getFileSystem(settings).exists(root):
                raise FileNotFoundError(f"{root.toString()} does not exist")
    # A frame that has been read keeps how it was read.
    return frame.select("*")


def _class(thing: Any) -> str:
    name: str = thing.getClass().getSimpleName()
    return name
