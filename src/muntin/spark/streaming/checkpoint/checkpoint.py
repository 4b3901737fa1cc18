"""A run's checkpoint: everything that a run which starts again needs to go on identically."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa

from muntin.aggregators.registry import admit, own
from muntin.plan import SharedPlan
from muntin.plan.routes import RoutedPlan
from muntin.sinks.durable import TEMPORARY, local_path, make_folder, seal, unseal
from muntin.sinks.sink import SinkError
from muntin.spark.streaming.buckets import Buckets
from muntin.spark.streaming.checkpoint.arrivals import SparkLogs
from muntin.spark.streaming.checkpoint.audit import check_moment
from muntin.spark.streaming.checkpoint.files import (
    damaged,
    hold,
    missing,
    read_sealed,
    versions,
    write_durably,
    write_version,
    writing_to,
)
from muntin.spark.streaming.checkpoint.records import RecordLog
from muntin.spark.streaming.problems import RESTORE, CheckpointError
from muntin.spark.streaming.tasks.carrier import StateFolder

# Of a run over a single stream, and over several.
FORMAT, FORMAT_OF_SEVERAL = 5, 6
_MARKER = "muntin.json"
_CHANGES = "changes"
# A crash before the marker is there leaves these; anything else is not ours.
_STATE = "state"
_OWN = {"lock", _CHANGES}


def _version() -> str:
    try:
        return metadata.version("muntin")
    except metadata.PackageNotFoundError:
        # The code was shipped to a worker, and not installed there.
        return "unknown"


@dataclass(frozen=True)
class Changes:
    """The queries and tables that the next batch runs with.

    ``asked`` are the queries that the last start was given, so that another start can tell what
    its caller changed from what was added and removed while the stream ran. Queries are SQL.
    """

    version: int = 0
    queries: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    tables: dict[str, str] = field(default_factory=dict)


class Checkpoint:
    """A folder that one run at a time holds.

    Args:
        folder: Where it is, or shall be: a path that the driver can rename and sync files in.
        buckets: How state is spread, where the checkpoint does not say so yet.
        beats: Whether a heartbeat stands beside the stream, likewise; see `Heartbeat`.
        timezone: Where local times are, likewise.
        streams: The names of the streams; none where there is a single one, which may have any.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        buckets: Buckets,
        *,
        beats: bool = False,
        timezone: str = "UTC",
        streams: Sequence[str] = (),
    ) -> None:
        try:
            self.root = local_path(folder)
        except SinkError as error:
            raise CheckpointError(error.message, hint=error.hint) from error
        self._lock = hold(self.root)
        try:
            with writing_to(self.root):
                self._open(buckets, streams, beats=beats, timezone=timezone)
        except BaseException:
            self._lock.release()
            raise

    def _open(
        self, buckets: Buckets, streams: Sequence[str], *, beats: bool, timezone: str
    ) -> None:
        content = read_marker(self.root)
        if content is None:
            self._refuse_foreign()
            content = {
                "format": FORMAT_OF_SEVERAL if streams else FORMAT,
                "version": _version(),
                "run": uuid4().hex,
                "partitions": buckets.partitions,
                "buckets": buckets.count,
                "beats": beats,
                "timezone": timezone,
                **({"streams": list(streams)} if streams else {}),
            }
            self.run: str = content["run"]
            # Before the marker: where that is, the changes must be.
            self.write_changes(Changes())
            write_durably(self.root / _MARKER, seal(content))
        self._check_streams(content.get("streams", ()), streams)
        self.run = content["run"]
        count = max(len(streams), 1)
        self.buckets = Buckets(content["partitions"], content["buckets"], count)
        self.beats: bool = content["beats"]
        self.records = RecordLog(self.root / "batches", self.run, count)
        self.records.remove_temporary()
        self.logs = SparkLogs(self.spark_folder)
        for name in ("plans", "tables", _STATE):
            make_folder(self.root / name)
        self.states = StateFolder(self.root / _STATE, self.run)

    def _check_streams(self, known: Sequence[str], asked: Sequence[str]) -> None:
        if [name.lower() for name in known] == [name.lower() for name in asked]:
            return
        was, now = (", ".join(names) if names else "one" for names in (known, asked))
        raise CheckpointError(
            f"the run in {self.root} was begun over other streams: {was}, and now {now}",
            hint="Spark cannot add or remove a source. Give the streams that it was begun with, "
            "or start with an empty checkpoint and another folder for results",
        )

    def _refuse_foreign(self) -> None:
        names = {path.name for path in self.root.iterdir()}
        if "batches" in names or is_begun(self.root):
            raise missing(self.root / _MARKER)
        foreign = sorted(name for name in names - _OWN if not name.startswith(TEMPORARY))
        if foreign:
            raise CheckpointError(
                f"{self.root} holds files other than a checkpoint of Muntin, such as {foreign[0]}",
                hint="choose an empty folder, or one that does not exist",
            )
        for path in versions(self.root / _CHANGES).values():
            path.unlink()

    @property
    def spark_folder(self) -> Path:
        """Where Spark keeps its offsets and the state."""
        return self.root / "spark"

    def last_committed(self) -> int:
        """The last batch that Spark has committed; -1 for none."""
        return self.logs.committed()

    def changes(self) -> Changes | None:
        """The queries and tables that the next batch runs with; None for a fresh checkpoint."""
        kept = versions(self.root / _CHANGES)
        if not kept:
            raise CheckpointError(
                f"the queries of the checkpoint are missing: {self.root / _CHANGES} is empty",
                hint=RESTORE,
            )
        content = read_sealed(kept[max(kept)], self.run)
        assert content is not None
        queries, asked = tuple(content["queries"]), tuple(content["asked"])
        found = Changes(content["version"], queries, asked, content["tables"])
        return found if found.version else None

    def write_changes(self, changes: Changes) -> None:
        """Make a change durable; it takes effect with the next batch that has no record yet."""
        write_version(self.root / _CHANGES, changes.version, self.run, asdict(changes))

    def save_plan(self, plan: SharedPlan | RoutedPlan) -> str:
        """Keep a plan, and give it a name by its content."""
        techniques = own(plan.techniques) if isinstance(plan, SharedPlan) else ()
        content = pickle.dumps((_version(), plan, *techniques), protocol=5)
        name = _digest(content)
        self._keep(self.plan_path(name), content)
        return name

    def plan(self, name: str) -> SharedPlan:
        """A plan that was kept."""
        return load_plan(self.plan_path(name))

    def row_plan(self, name: str) -> RoutedPlan:
        """A plan of queries over rows that was kept."""
        return load_row_plan(self.plan_path(name))

    def plan_path(self, name: str) -> Path:
        """The file of a plan."""
        return self.root / "plans" / f"muntin-{self.run}-{name}.plan"

    def save_table(self, table: pa.Table) -> str:
        """Keep a version of a static table, and give it a name by its content."""
        stream = pa.BufferOutputStream()
        with pa.ipc.new_file(stream, table.schema) as file:
            file.write_table(table.combine_chunks())
        content = stream.getvalue().to_pybytes()
        name = _digest(content)
        self._keep(self.table_path(name), content)
        return name

    @staticmethod
    def _keep(path: Path, content: bytes) -> None:
        """Write a file that is named by its content, unless it is there as it should be."""
        try:
            if path.read_bytes() == content:
                return
        except OSError:
            pass
        write_durably(path, content)

    def table_path(self, name: str) -> Path:
        """The file of a version of a table."""
        return self.root / "tables" / f"muntin-{self.run}-{name}.arrow"

    def prune(self, tables: Iterable[str]) -> None:
        """Forget plans and versions of tables that no batch needs, but for these tables."""
        needed = self.records.needed() | set(tables)
        keep = {path(name) for name in needed for path in (self.plan_path, self.table_path)}
        for folder in ("plans", "tables"):
            for path in (self.root / folder).iterdir():
                if path not in keep:
                    path.unlink(missing_ok=True)

    @property
    def is_closing(self) -> bool:
        """Whether a run has begun to answer the windows that are open: no other batch may run."""
        newest = self.records.record(self.records.newest("record"))
        return newest is not None and newest.is_closing

    @property
    def is_closed(self) -> bool:
        """Whether the windows that were open have been answered, for good."""
        return self.is_closing and self.records.newest("outcome") == self.records.newest("record")

    def check(self) -> None:
        """Refuse a checkpoint that is damaged, or whose parts are not of one moment.

        Then remove what batches left that were not committed.
        """
        changes = self.changes()
        check_moment(self.records, self.logs, 0 if changes is None else changes.version)
        # Not before: where a log of Spark's is gone, these are files that a copy of it needs.
        self.states.drop_after(self.last_committed())

    def refuse_closed(self) -> None:
        """Refuse to go on after the open windows have been answered."""
        if self.is_closed:
            raise CheckpointError(
                f"the run in {self.root} is complete: it was stopped with flush=True, and more "
                "rows may belong to windows that it has answered",
                hint="start with an empty checkpoint and another folder for results",
            )

    def release(self) -> None:
        """Let another run have the checkpoint."""
        self._left_at = self.last_committed()
        self._lock.release()

    def hold_again(self) -> None:
        """Take the checkpoint back, if it is as it was when it was let go."""
        self._lock = hold(self.root)
        if self.last_committed() != self._left_at:
            self._lock.release()
            raise CheckpointError(
                f"another run has since continued with the checkpoint {self.root} since",
                hint="stop that one with flush=True instead",
            )


def zone_kept(folder: str | os.PathLike[str]) -> str | None:
    """The time zone that the run of a checkpoint began with; None where there is no run yet."""
    try:
        content = read_marker(local_path(folder))
    except SinkError:
        # Said where the checkpoint is opened.
        return None
    return None if content is None else content.get("timezone", "UTC")


def is_complete(root: Path) -> bool:
    """Whether the run of a checkpoint has answered its open windows, and so has ended for good."""
    content = read_marker(root)
    if content is None:
        return False
    records = RecordLog(root / "batches", content["run"])
    newest = records.record(records.newest("record"))
    if newest is None or not newest.is_closing:
        return False
    return records.newest("outcome") == newest.batch


def is_begun(root: Path) -> bool:
    """Whether a folder is the checkpoint of a run that has had queries."""
    return any(versions(root / _CHANGES))


def load_plan(path: str | os.PathLike[str]) -> SharedPlan:
    """Read a plan from its file."""
    found: SharedPlan = _load(path)
    return found


def load_row_plan(path: str | os.PathLike[str]) -> RoutedPlan:
    """Read a plan of queries over rows from its file."""
    found: RoutedPlan = _load(path)
    return found


def _load(path: str | os.PathLike[str]) -> Any:
    content = _read_named(Path(path))
    try:
        _, plan, *techniques = pickle.loads(content)
        admit(techniques)
    except Exception as error:
        raise CheckpointError(
            f"the plan in {path} cannot be read by Muntin {_version()}: {error!r}",
            hint="continue with the version of Muntin that wrote it",
        ) from error
    return plan


def load_table(path: str | os.PathLike[str]) -> pa.Table:
    """Read a version of a table from its file."""
    return pa.ipc.open_file(_read_named(Path(path))).read_all()


def _read_named(path: Path) -> pa.Buffer:
    """A file that is named by its content; processes of a machine share its memory."""
    try:
        if not path.stat().st_size:
            raise damaged(path, "it is empty")
        with pa.memory_map(str(path)) as file:
            content = file.read_buffer()
    except FileNotFoundError:
        raise missing(path) from None
    if _digest(content) != path.stem.rpartition("-")[2]:
        raise damaged(path, "its content is not what it is named by")
    return content


def _digest(content: bytes | pa.Buffer) -> str:
    return hashlib.sha256(content).hexdigest()[:20]


def read_marker(root: Path) -> dict[str, Any] | None:
    """What is said about a checkpoint as a whole; None where a folder is not one, or not yet."""
    path = root / _MARKER
    try:
        data = path.read_bytes()
        found = json.loads(data)
        if isinstance(found, dict) and found.get("format") not in (FORMAT, FORMAT_OF_SEVERAL):
            raise CheckpointError(
                f"the checkpoint {root} has format {found.get('format')!r}, and Muntin "
                f"{_version()} reads formats {FORMAT} and {FORMAT_OF_SEVERAL}",
                hint="let the version of Muntin that wrote it answer the open windows "
                "(stop(flush=True)), and start with an empty checkpoint and another folder for "
                "results",
            )
        return unseal(data)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError as error:
        raise damaged(path, error) from error
