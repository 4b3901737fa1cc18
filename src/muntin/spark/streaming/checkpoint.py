"""A run's checkpoint: everything that a run which starts again needs to go on identically."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa

from muntin.plan import SharedPlan
from muntin.sinks.durable import local_path, make_folder
from muntin.sinks.problems import SinkError
from muntin.spark.streaming.buckets import Buckets
from muntin.spark.streaming.lock import hold
from muntin.spark.streaming.problems import CheckpointError
from muntin.spark.streaming.records import RecordLog, read_json
from muntin.spark.streaming.writing import write_durably, writing_to

FORMAT = 1
_MARKER = "muntin.json"
_CHANGES = "changes.json"


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
    """

    def __init__(self, folder: str | os.PathLike[str], buckets: Buckets) -> None:
        try:
            self.root = local_path(folder)
        except SinkError as error:
            raise CheckpointError(error.message, hint=error.hint) from error
        self._lock = hold(self.root)
        try:
            with writing_to(self.root):
                self._open(buckets)
        except BaseException:
            self._lock.release()
            raise

    def _open(self, buckets: Buckets) -> None:
        marker = self.root / _MARKER
        content = read_json(marker)
        if content is None:
            self._refuse_foreign()
            content = {
                "format": FORMAT,
                "version": _version(),
                "run": uuid4().hex,
                "partitions": buckets.partitions,
                "buckets": buckets.count,
                "status": "open",
            }
            write_durably(marker, json.dumps(content).encode())
        _check_format(content, self.root)
        self.run: str = content["run"]
        self.buckets = Buckets(content["partitions"], content["buckets"])
        self.status: str = content["status"]
        self._content = content
        self.records = RecordLog(self.root / "batches")
        self.records.remove_temporary()
        for name in ("plans", "tables"):
            make_folder(self.root / name)

    def _refuse_foreign(self) -> None:
        foreign = [path.name for path in self.root.iterdir() if path.name != "lock"]
        if foreign:
            raise CheckpointError(
                f"{self.root} holds other files than a checkpoint of Muntin, such as "
                f"{sorted(foreign)[0]}",
                hint="choose an empty folder, or one that does not exist",
            )

    @property
    def spark_folder(self) -> Path:
        """Where Spark keeps its offsets and the state."""
        return self.root / "spark"

    def last_committed(self) -> int:
        """The last batch that Spark has committed; -1 for none."""
        folder = self.spark_folder / "commits"
        names = os.listdir(folder) if folder.is_dir() else []
        return max((int(name) for name in names if name.isdigit()), default=-1)

    def changes(self) -> Changes | None:
        """The queries and tables that the next batch runs with; None for a fresh checkpoint."""
        content = read_json(self.root / _CHANGES)
        if content is None:
            return None
        queries, asked = tuple(content["queries"]), tuple(content["asked"])
        return Changes(content["version"], queries, asked, content["tables"])

    def write_changes(self, changes: Changes) -> None:
        """Make a change durable; it takes effect with the next batch that has no record yet."""
        write_durably(self.root / _CHANGES, json.dumps(asdict(changes)).encode())

    def save_plan(self, plan: SharedPlan) -> str:
        """Keep a plan, and give it a name by its content."""
        content = pickle.dumps((_version(), plan), protocol=5)
        name = hashlib.sha256(content).hexdigest()[:20]
        path = self.plan_path(name)
        if not path.exists():
            write_durably(path, content)
        return name

    def plan(self, name: str) -> SharedPlan:
        """A plan that was kept."""
        return load_plan(self.plan_path(name))

    def plan_path(self, name: str) -> Path:
        """The file of a plan."""
        return self.root / "plans" / f"muntin-{self.run}-{name}.plan"

    def save_table(self, table: pa.Table) -> str:
        """Keep a version of a static table, and give it a name by its content."""
        stream = pa.BufferOutputStream()
        with pa.ipc.new_file(stream, table.schema) as file:
            file.write_table(table.combine_chunks())
        content = stream.getvalue().to_pybytes()
        name = hashlib.sha256(content).hexdigest()[:20]
        path = self.table_path(name)
        if not path.exists():
            write_durably(path, content)
        return name

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

    def begin_finish(self) -> None:
        """Say that the open windows are about to be answered: no other batch may be run."""
        self._mark("closing")

    def finish(self) -> None:
        """Mark the run as ended for good: its open windows have been answered."""
        self._mark("closed")

    def _mark(self, status: str) -> None:
        self._content["status"] = self.status = status
        write_durably(self.root / _MARKER, json.dumps(self._content).encode())

    @property
    def is_flushing(self) -> bool:
        """Whether a run before had begun to answer the open windows, and was interrupted."""
        return self.status == "closing"

    def refuse_closed(self) -> None:
        """Refuse to go on after the open windows have been answered."""
        if self.status == "closed":
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
                f"another run has gone on with the checkpoint {self.root} since",
                hint="stop that one with flush=True instead",
            )


def is_complete(root: Path) -> bool:
    """Whether the run of a checkpoint has answered its open windows, and so has ended for good."""
    content = read_json(root / _MARKER)
    return content is not None and content.get("status") == "closed"


def load_plan(path: str | os.PathLike[str]) -> SharedPlan:
    """Read a plan from its file."""
    content = Path(path).read_bytes()
    try:
        _, plan = pickle.loads(content)
    except Exception as error:
        raise CheckpointError(
            f"the plan in {path} cannot be read by Muntin {_version()}: {error!r}",
            hint="continue with the version of Muntin that wrote it",
        ) from error
    found: SharedPlan = plan
    return found


def load_table(path: str | os.PathLike[str]) -> pa.Table:
    """Read a version of a table from its file."""
    with pa.memory_map(os.fspath(path)) as file:
        return pa.ipc.open_file(file).read_all()


def _check_format(content: dict[str, Any], root: Path) -> None:
    if content.get("format") != FORMAT:
        raise CheckpointError(
            f"the checkpoint {root} has format {content.get('format')!r}, and Muntin "
            f"{_version()} reads format {FORMAT}",
            hint="continue with the version of Muntin that wrote it, or start with an empty "
            "checkpoint",
        )
