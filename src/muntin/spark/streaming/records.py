"""What is written down about every batch: before it runs what it does, and after it what it saw.

A batch that runs again after a crash finds its record, so it makes the same decisions.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from muntin.engine.rate import RecentRate
from muntin.sinks.durable import TEMPORARY, make_folder
from muntin.spark.streaming.problems import CheckpointError
from muntin.spark.streaming.writing import write_durably

REPORT_SCHEMA = "report binary"
_KEPT = 16
_DIGITS = 20


@dataclass(frozen=True)
class BatchRecord:
    """What a batch does, decided before it runs.

    Attributes:
        batch: Its number, as Spark counts.
        plan: The name of its plan.
        before: The name of the plan that the state comes from; None where there is no state.
        seen: The largest event time of all batches before; None before the first.
        watermark: Rows below this time are late; None before the first.
        lateness: How far the watermark stays behind the largest event time.
        horizon: The largest time that a row may have; later ones are bad rows.
        clock: The driver's clock, in microseconds.
        tables: The version of each static table.
    """

    batch: int
    plan: str
    before: str | None
    seen: int | None
    watermark: int | None
    lateness: int
    horizon: int | None
    clock: int
    tables: dict[str, str]


@dataclass(frozen=True)
class BatchOutcome:
    """What is known after a batch: where the next one starts, and totals since the first.

    Attributes:
        batch: Its number.
        state: The name of the plan that the state is of.
        seen: The largest event time so far.
        watermark: The time up to which windows are answered.
        rows: Rows that came in.
        late_rows: Rows below the watermark, which were dropped.
        bad_rows: Rows without a time that can be used, which were dropped.
        results: Rows of results by query.
        errors: Failed values by query.
        state_bytes: Bytes of all state.
        delivered: The last batch that had results, for each place that keeps them.
        set_aside: The last batch that had late or bad rows, for each place that keeps those.
        recent_rows: Rows of recent batches, older ones counting for less.
        recent_ticks: By how much those moved the largest event time, counted alike.
    """

    batch: int = -1
    state: str | None = None
    seen: int | None = None
    watermark: int | None = None
    rows: int = 0
    late_rows: int = 0
    bad_rows: int = 0
    results: dict[str, int] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)
    state_bytes: int = 0
    delivered: dict[str, int] = field(default_factory=dict)
    set_aside: dict[str, int] = field(default_factory=dict)
    recent_rows: float = 0.0
    recent_ticks: float = 0.0

    @property
    def recent(self) -> RecentRate:
        """How many rows come per tick."""
        return RecentRate(self.recent_rows, self.recent_ticks)

    def without_others(self, names: set[str]) -> BatchOutcome:
        """The same, with the totals of these queries only."""
        return replace(
            self,
            results={name: n for name, n in self.results.items() if name in names},
            errors={name: n for name, n in self.errors.items() if name in names},
        )


@dataclass
class BucketReport:
    """One bucket's part of a batch.

    ``written`` are the sink's entries for the results of several buckets, which ``covers``
    counts: a task writes the results of all its buckets together. ``aside`` are those for rows
    that were late or bad.
    """

    bucket: int
    latest: int
    rows: int = 0
    late_rows: int = 0
    bad_rows: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    results: dict[str, int] = field(default_factory=dict)
    state_bytes: int = 0
    covers: int = 0
    written: Sequence[object] = ()
    aside: Sequence[object] = ()

    def to_bytes(self) -> bytes:
        """The report as bytes."""
        return pickle.dumps(self, protocol=5)

    @classmethod
    def of_bytes(cls, data: bytes) -> BucketReport:
        """The report that `to_bytes` wrote."""
        report: BucketReport = pickle.loads(data)
        return report


class RecordLog:
    """Records and outcomes in a folder; the latest are kept, durably."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        make_folder(folder)

    def record(self, batch: int) -> BatchRecord | None:
        """The record of a batch, if it has one."""
        content = read_json(self._path(batch, "record"))
        return None if content is None else BatchRecord(**content)

    def outcome(self, batch: int) -> BatchOutcome | None:
        """The outcome of a batch, if it has come to its end."""
        content = read_json(self._path(batch, "outcome"))
        return None if content is None else BatchOutcome(**content)

    def write_record(self, record: BatchRecord) -> None:
        """Write down what a batch does."""
        write_durably(self._path(record.batch, "record"), _encode(record))

    def write_outcome(self, outcome: BatchOutcome) -> None:
        """Write down what a batch saw, and forget those of long ago."""
        write_durably(self._path(outcome.batch, "outcome"), _encode(outcome))
        for kind in ("record", "outcome"):
            self._path(outcome.batch - _KEPT, kind).unlink(missing_ok=True)

    def remove_temporary(self) -> None:
        """Remove what a crash left between writing a file and naming it."""
        for path in self.folder.glob(f"{TEMPORARY}*"):
            path.unlink(missing_ok=True)

    def needed(self) -> set[str]:
        """The plans and versions of tables that some batch may need again."""
        found: set[str | None] = set()
        for path in self.folder.glob("*.json"):
            content = read_json(path) or {}
            found |= {content.get("plan"), content.get("before"), content.get("state")}
            found |= set(content.get("tables", {}).values())
        return {name for name in found if name is not None}

    def _path(self, batch: int, kind: str) -> Path:
        return self.folder / f"{batch:0{_DIGITS}d}.{kind}.json"


def read_json(path: Path) -> dict[str, Any] | None:
    """What a file of the checkpoint says; None if there is none."""
    try:
        content: dict[str, Any] = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise CheckpointError(
            f"{path} is damaged: {error}", hint="restore the checkpoint from a copy"
        ) from error
    return content


def _encode(item: BatchRecord | BatchOutcome) -> bytes:
    return json.dumps(asdict(item)).encode()
