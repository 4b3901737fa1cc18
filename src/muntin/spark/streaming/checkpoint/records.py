"""What is written down about every batch: before it runs what it does, and after it what it saw.

``batches/<batch>.record.json`` is written before a batch runs, so that one that is run again
makes the same decisions over the same rows. ``batches/<batch>.outcome.json`` is written when all
its tasks have ended and before any of its results are committed: where a sink holds results of a
batch, the batch has an outcome, and a repeat that counts otherwise is refused. A batch that Spark
has committed has both. The closing batch, which Spark knows nothing of, gets its outcome last: with
it, the run is complete. Each file names its run and itself, and has a checksum.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from muntin.counts import RowCounts
from muntin.engine.progress import RecentRate
from muntin.sinks.durable import TEMPORARY, make_folder
from muntin.spark.streaming.checkpoint.files import missing, read_sealed, write_sealed
from muntin.spark.streaming.problems import RESTORE, RunError

KEPT = 16
_DIGITS = 20
# What a batch that is run again must count as before, in the words of a message.
_COUNTED = {
    "rows": "rows so far:",
    "late_rows": "late rows so far:",
    "bad_rows": "bad rows so far:",
    "results": "results so far:",
    "errors": "failed values so far:",
    "seen": "the largest event time:",
    "watermark": "the watermark:",
    "state": "the plan:",
    "row_state": "the plan of rows:",
}
_OF_ROWS = ("row_plan", "row_before", "row_state")
_ROWS_ONLY = (*_OF_ROWS, "since")
_OF_ALL = ("results", "errors", "row_state")
_NAME = re.compile(r"(\d{20})\.(record|outcome)\.json")
_Each = TypeVar("_Each", "StreamRecord", "StreamOutcome")


@dataclass(frozen=True)
class StreamRecord:
    """What a batch does with one stream.

    Attributes:
        plan: The name of its plan.
        before: The name of the plan that the state comes from; None where there is no state.
        seen: The largest event time of all batches before; None before the first.
        watermark: Rows below this time are late; None before the first.
        lateness: How far the watermark stays behind the largest event time.
        horizon: The largest time that a row may have; later ones are bad rows.
        moment: Where the clock, or the other streams, have brought a stream that fell silent; it
            counts if the batch has no row of the stream. None while rows come.
    """

    plan: str
    before: str | None
    seen: int | None
    watermark: int | None
    lateness: int
    horizon: int | None = None
    moment: int | None = None

    def reached(self, latest: int | None) -> int | None:
        """The watermark after the batch, given the largest event time of its rows, if any.

        >>> record = StreamRecord("p", "p", 100, 90, 10, moment=160)
        >>> record.reached(None), record.reached(95), record.reached(120)
        (150, 90, 110)
        """
        times = [self.seen, self.moment if latest is None else latest]
        known = [each - self.lateness for each in times if each is not None]
        if self.watermark is not None:
            known.append(self.watermark)
        return max(known, default=None)


@dataclass(frozen=True)
class BatchRecord:
    """What a batch does, decided before it runs.

    Attributes:
        batch: Its number, as Spark counts.
        streams: What it does with each stream.
        clock: The driver's clock, in microseconds.
        tables: The version of each static table.
        changes: The version of the queries and tables that it was decided with.
        offsets: How far each source is read by its end, as Spark's offset log has it.
        arrivals: The files that sources have named so far; see `Arrivals`.
        is_closing: Whether it takes in no rows and answers all windows that are open: the last.
        row_plan: The name of the plan of queries over rows; None while there were never any.
        row_before: The name of the plan that their state comes from; None where there is none.
        keeps: What it keeps to be asked; see `KeepRecord`.
        declared: The version of what was to be kept that it was decided with.
        splits: The hot keys that it splits; see `SplitKey`.
    """

    batch: int
    streams: tuple[StreamRecord, ...]
    clock: int
    tables: dict[str, str]
    changes: int = 0
    offsets: Sequence[str] = ()
    arrivals: Sequence[str] = ()
    is_closing: bool = False
    row_plan: str | None = None
    row_before: str | None = None
    keeps: Sequence[Mapping[str, Any]] = ()
    declared: int = 0
    splits: Sequence[Mapping[str, Any]] = ()

    def to_content(self) -> dict[str, Any]:
        """The record as values that JSON can hold."""
        content = _with_streams(asdict(self))
        for name in ("keeps", "declared", "splits"):
            if not content[name]:
                del content[name]
        return content

    @classmethod
    def of_content(cls, content: Mapping[str, Any]) -> BatchRecord:
        """The record that `to_content` wrote."""
        streams, others = _apart(content, StreamRecord)
        return cls(streams=streams, **others)


@dataclass(frozen=True)
class StreamOutcome(RowCounts):
    """What is known of one stream after a batch: where it is, and its rows since the first.

    Attributes:
        state: The name of the plan that the state is of.
        seen: The largest event time so far.
        watermark: The time up to which windows are answered.
        heard: The clock of the last batch that had rows of the stream; until one has, that of the
            first batch. None before that.
        recent_rows: Rows of recent batches, older ones counting for less.
        recent_ticks: By how much those moved the largest event time, counted alike.
    """

    state: str | None = None
    seen: int | None = None
    watermark: int | None = None
    heard: int | None = None
    recent_rows: float = 0.0
    recent_ticks: float = 0.0

    @property
    def recent(self) -> RecentRate:
        """How many rows come per tick."""
        return RecentRate(self.recent_rows, self.recent_ticks)


@dataclass(frozen=True)
class BatchOutcome:
    """What is known after a batch: where the next one starts, and totals since the first.

    A batch that is run again must come to the same, but for the bytes of state and what work it
    took: a state that is read again is built again.

    Attributes:
        batch: Its number.
        streams: What is known of each stream.
        results: Rows of results by query.
        errors: Failed values by query.
        state_bytes: Bytes of all state.
        delivered: The last batch that had results, for each place that keeps them.
        set_aside: The last batch that had late or bad rows, for each place that keeps those.
        tokens: What the state of each bucket is known by, in the order of buckets; empty where
            there is no state. The next batch must find the same.
        files: The files of state that the next batch may read: the batches of each partition.
        aggregations: Those of rows, along time and along cells.
        row_state: The name of the plan that the state of queries over rows is of.
        since: The first instant that each query over rows answers wholly, in ticks; None for one
            that has seen all rows.
    """

    batch: int = -1
    streams: tuple[StreamOutcome, ...] = (StreamOutcome(),)
    results: dict[str, int] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)
    state_bytes: int = 0
    delivered: dict[str, int] = field(default_factory=dict)
    set_aside: dict[str, int] = field(default_factory=dict)
    tokens: Sequence[str] = ()
    files: Sequence[Sequence[int]] = ()
    aggregations: Sequence[int] = (0, 0, 0)
    row_state: str | None = None
    since: dict[str, int | None] | None = None

    @property
    def rows(self) -> int:
        """The rows of all streams."""
        return sum(each.rows for each in self.streams)

    def without_others(self, names: set[str]) -> BatchOutcome:
        """The same, with the totals of these queries only."""
        return replace(
            self,
            results={name: n for name, n in self.results.items() if name in names},
            errors={name: n for name, n in self.errors.items() if name in names},
            since=None
            if self.since is None
            else {name: instant for name, instant in self.since.items() if name in names},
        )

    def to_content(self) -> dict[str, Any]:
        """The outcome as values that JSON can hold."""
        return _with_streams(asdict(self))

    @classmethod
    def of_content(cls, content: Mapping[str, Any]) -> BatchOutcome:
        """The outcome that `to_content` wrote."""
        streams, others = _apart(content, StreamOutcome)
        return cls(streams=streams, **others)


def _with_streams(content: dict[str, Any]) -> dict[str, Any]:
    """What is written: the values of a single stream stand among those of the batch.

    Nothing is said about queries over rows where there are none.
    """
    streams = content.pop("streams")
    for name in _ROWS_ONLY:
        if name in content and content[name] is None:
            del content[name]
    return {**content, **streams[0]} if len(streams) == 1 else {**content, "streams": streams}


def _apart(
    content: Mapping[str, Any], kind: type[_Each]
) -> tuple[tuple[_Each, ...], dict[str, Any]]:
    """The streams, and all that is not of one stream."""
    own = {each.name for each in fields(kind)}
    listed = content.get("streams", [content])
    streams = tuple(kind(**{k: v for k, v in each.items() if k in own}) for each in listed)
    others = {k: v for k, v in content.items() if k not in own and k != "streams"}
    return streams, others


class RecordLog:
    """Records and outcomes of a run in a folder; the latest are kept, durably.

    ``streams`` is how many streams the run has.
    """

    def __init__(self, folder: Path, run: str, streams: int = 1) -> None:
        self.folder, self._run, self._streams = folder, run, streams
        make_folder(folder)

    def record(self, batch: int) -> BatchRecord | None:
        """The record of a batch, if it has one."""
        content = read_sealed(self.path(batch, "record"), self._run)
        return None if content is None else BatchRecord.of_content(content)

    def outcome(self, batch: int) -> BatchOutcome | None:
        """The outcome of a batch, if its tasks have come to their end."""
        content = read_sealed(self.path(batch, "outcome"), self._run)
        return None if content is None else BatchOutcome.of_content(content)

    def before(self, batch: int) -> BatchOutcome:
        """The outcome that a batch starts from, which must be there for all but the first."""
        if batch == 0:
            return BatchOutcome(streams=(StreamOutcome(),) * self._streams)
        found = self.outcome(batch - 1)
        if found is None:
            raise missing(self.path(batch - 1, "outcome"))
        return found

    def write_record(self, record: BatchRecord) -> None:
        """Write down what a batch does."""
        write_sealed(self.path(record.batch, "record"), self._run, record.to_content())

    def write_outcome(self, outcome: BatchOutcome) -> None:
        """Write down what a batch saw, and forget those of long ago.

        Raises:
            RunError: If the batch was run before and saw something else.
        """
        known = self.outcome(outcome.batch)
        if known is not None:
            _check_repeat(known, outcome)
        write_sealed(self.path(outcome.batch, "outcome"), self._run, outcome.to_content())
        for kind in ("record", "outcome"):
            self.path(outcome.batch - KEPT, kind).unlink(missing_ok=True)

    def newest(self, kind: str) -> int:
        """The last batch that has a record or an outcome; -1 for none."""
        names = (_NAME.fullmatch(path.name) for path in self.folder.iterdir())
        return max((int(name[1]) for name in names if name and name[2] == kind), default=-1)

    def remove_temporary(self) -> None:
        """Remove what a crash left between writing a file and naming it."""
        for path in self.folder.glob(f"{TEMPORARY}*"):
            path.unlink(missing_ok=True)

    def needed(self) -> set[str]:
        """The plans and versions of tables that some batch may need again."""
        found: set[str | None] = set()
        for path in self.folder.glob("*.json"):
            content = read_sealed(path, self._run) or {}
            for stream in content.get("streams", [content]):
                found |= {stream.get("plan"), stream.get("before"), stream.get("state")}
            found |= {content.get(name) for name in _OF_ROWS}
            found |= set(content.get("tables", {}).values())
            found |= {keep["plan"] for keep in content.get("keeps", ())}
        return {name for name in found if name is not None}

    def state_files(self) -> set[tuple[int, int]]:
        """The files of state that some batch may start from: their batches and partitions."""
        found: set[tuple[int, int]] = set()
        for path in self.folder.glob("*.outcome.json"):
            content = read_sealed(path, self._run) or {}
            for partition, batches in enumerate(content.get("files", ())):
                found |= {(batch, partition) for batch in batches}
        return found

    def path(self, batch: int, kind: str) -> Path:
        """The file of a record or an outcome."""
        return self.folder / f"{batch:0{_DIGITS}d}.{kind}.json"


def _check_repeat(known: BatchOutcome, found: BatchOutcome) -> None:
    """Refuse that a batch which is run again has counted otherwise."""
    differences = (
        f"{words} {was}, {now} now"
        for name, words in _COUNTED.items()
        for was, now in zip(_counted(known, name), _counted(found, name), strict=True)
        if was != now
    )
    difference = next(differences, "")
    if not difference and list(known.tokens) != list(found.tokens):
        difference = "the state that it leaves is another one"
    if not difference:
        return
    raise RunError(
        f"batch {found.batch} was run before, and is not the same now: {difference}",
        hint="its results may be committed, so nothing was changed. Restore its rows as they "
        f"were and start again; or {RESTORE}. A source that cannot give its rows twice, such as a "
        "socket, has only the last choice; Kafka or files before it would let it resume",
    )


def _counted(outcome: BatchOutcome, name: str) -> Iterator[object]:
    """What an outcome says: of all streams together, or of one after the other."""
    for each in (outcome,) if name in _OF_ALL else outcome.streams:
        yield getattr(each, name)
