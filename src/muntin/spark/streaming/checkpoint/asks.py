"""The log of what is kept to be asked: files that tasks wrote, named by the manifest of a batch.

``asks/data/<keep>/`` has the files, ``asks/commits/<batch>.json`` says which of them are kept after
a batch, and ``asks/keeps/<version>.json`` what the next batch keeps. A task's file is named by its
attempt, so one that no manifest names is of an attempt that failed. A manifest lists every file,
with its checksum: a reader needs the newest one and nothing else.
"""

from __future__ import annotations

import os
import threading
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from muntin.engine.slices.partials import PartialBatch
from muntin.engine.wire import from_bytes, to_bytes
from muntin.plan import SharedPlan
from muntin.queries import keeps
from muntin.queries.asking.keeps import slice_keep
from muntin.sinks.durable import local_path, make_folder, write_atomically
from muntin.spark.streaming.checkpoint.checkpoint import load_plan, read_marker
from muntin.spark.streaming.checkpoint.files import (
    missing,
    read_sealed,
    versions,
    write_sealed,
    write_version,
)
from muntin.spark.streaming.checkpoint.records import RecordLog
from muntin.spark.streaming.problems import RESTORE, CheckpointError
from muntin.synopses import Asking, Kept, Moment, Replica, Versions
from muntin.synopses.keeps.block import Block

FOLDER = "asks"
# So many manifests are there: a batch that is run again starts from the one before it, and a
# reader may be slow.
RETAINED = 8
_DIGITS = 20
_TRIES = 3
_LOST = "restore the checkpoint, or drop the keep and create it again"


@dataclass(frozen=True)
class KeepRecord:
    """A keep as a batch's record has it.

    Attributes:
        name: What its files are filed under; a keep that is created anew gets another.
        sql: The keep.
        plan: The name of its plan.
        stream: The number of its stream.
        since: The largest event time before its first batch; None if that was the first of all.
    """

    name: str
    sql: str
    plan: str
    stream: int = 0
    since: int | None = None

    @property
    def counted_as(self) -> str:
        """What values that fail in it are counted as; no query has such a name."""
        return f"keep {self.name.rpartition('-')[0]}"


@dataclass(frozen=True)
class KeptFile:
    """A file of kept entries: its name, and on which level its entries are put together."""

    name: str
    level: int = 0
    entries: int = 0
    checksum: int = 0


@dataclass(frozen=True)
class KeptState:
    """What a manifest says of one keep: where its stream stood, and the files."""

    keep: KeepRecord
    latest: int | None = None
    watermark: int | None = None
    rows: int = 0
    taken: int = 0
    first: int | None = None
    files: tuple[KeptFile, ...] = ()

    def moment(self, batch: int) -> Moment:
        """Where the stream stood after a batch; the first one is called 1, as in this process."""
        return Moment(batch + 1, self.latest, self.watermark)


@dataclass(frozen=True)
class Manifest:
    """All that is kept after a batch."""

    batch: int
    keeps: tuple[KeptState, ...] = ()


class AskLog:
    """The log in the folder of a checkpoint.

    Args:
        root: The checkpoint.
        run: The run that it is of.
    """

    def __init__(self, root: Path, run: str) -> None:
        self.root, self._run = root, run
        self.folder = root / FOLDER

    def declared(self) -> tuple[int, list[KeepRecord]]:
        """What the next batch keeps, and how often that was changed."""
        found = versions(self._keeps)
        if not found:
            return 0, []
        content = read_sealed(found[max(found)], self._run)
        assert content is not None
        return max(found), [KeepRecord(**each) for each in content["keeps"]]

    def declare(self, version: int, kept: Sequence[KeepRecord]) -> None:
        """Make it durable what the next batch keeps."""
        make_folder(self.folder)
        content = {"keeps": [asdict(each) for each in kept]}
        write_version(self._keeps, version, self._run, content)

    def resume(self, records: RecordLog, last: int) -> Manifest:
        """What is kept after the last batch that Spark has committed.

        Raises:
            CheckpointError: If files are gone or were put back as they were before, as the records
                of batches tell.
        """
        newest, record = records.record(records.newest("record")), records.record(last)
        version, _ = self.declared()
        if newest is not None and newest.declared > version:
            if not version:
                raise missing(self._keeps)
            raise CheckpointError(
                f"{self._keeps} is older than batch {newest.batch}: version {version}, and the "
                f"batch has version {newest.declared}",
                hint=RESTORE,
            )
        found = self.manifest(last)
        if found is None and record is not None and record.keeps:
            raise missing(self._path(last))
        return found or Manifest(last)

    def write(self, manifest: Manifest) -> None:
        """Commit what is kept after a batch; older manifests are forgotten."""
        make_folder(self.folder / "commits")
        content = {"batch": manifest.batch, "keeps": [asdict(each) for each in manifest.keeps]}
        write_sealed(self._path(manifest.batch), self._run, content)
        self._path(manifest.batch - RETAINED).unlink(missing_ok=True)

    def manifest(self, batch: int) -> Manifest | None:
        """What is kept after a batch, if anything was when it ended."""
        content = read_sealed(self._path(batch), self._run)
        if content is None:
            return None
        states = [
            KeptState(
                **{
                    **each,
                    "keep": KeepRecord(**each["keep"]),
                    "files": tuple(KeptFile(**file) for file in each["files"]),
                }
            )
            for each in content["keeps"]
        ]
        return Manifest(content["batch"], tuple(states))

    def batches(self) -> list[int]:
        """The batches of which it is known what is kept after them, the newest first."""
        names = (self.folder / "commits").glob("[0-9]*.json")
        return sorted((int(path.stem) for path in names if path.stem.isdigit()), reverse=True)

    def newest(self) -> Manifest | None:
        """What is kept after the newest batch of all."""
        # A run that starts again removes the manifest of a batch that it runs again.
        return next(filter(None, map(self.manifest, self.batches())), None)

    def path(self, keep: str, name: str) -> Path:
        """The file of a keep."""
        return self.folder / "data" / keep / name

    def read(self, plan: SharedPlan, keep: str, file: KeptFile) -> PartialBatch:
        """The entries of a file."""
        path = self.path(keep, file.name)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            raise CheckpointError(
                f"{path} is missing, which is kept to be asked", hint=_LOST
            ) from None
        if zlib.crc32(content) != file.checksum:
            # Arrow takes what it is given for what it was: a bit may be another answer, or a crash.
            raise CheckpointError(
                f"{path} is damaged, which is kept to be asked: its checksum is not that of the "
                "manifest",
                hint=_LOST,
            )
        return from_bytes(plan, content)[0]

    def clean(self, manifest: Manifest | None) -> None:
        """Remove the files that a manifest does not name: those of attempts that failed."""
        named = {
            self.path(state.keep.name, file.name)
            for state in (manifest.keeps if manifest else ())
            for file in state.files
        }
        for path in (self.folder / "data").glob("*/*"):
            if path not in named:
                path.unlink(missing_ok=True)
        for path in (self.folder / "commits").glob("[0-9]*.json"):
            if manifest is None or int(path.stem) > manifest.batch:
                path.unlink(missing_ok=True)

    @property
    def _keeps(self) -> Path:
        return self.folder / "keeps"

    def _path(self, batch: int) -> Path:
        return self.folder / "commits" / f"{batch:0{_DIGITS}d}.json"


def write_kept(folder: Path, name: str, partials: PartialBatch) -> KeptFile:
    """Write entries durably under a name that nobody else has."""
    make_folder(folder)
    content = to_bytes([partials])
    write_atomically(folder / name, content)
    return KeptFile(name, 0, int(partials.starts.size), zlib.crc32(content))


def opened(log: AskLog, state: KeptState, batch: int) -> tuple[Replica, dict[int, list[KeptFile]]]:
    """The replica of a keep from its files, and the files of each of its blocks."""
    keep = slice_keep(keeps(state.keep.sql)[0])
    plan = load_plan(_plan_path(log, state.keep.plan))
    moment = state.moment(batch)
    replica = Replica(
        Kept(keep, plan), state.keep.since, moment, state.rows, state.taken, state.first
    )
    blocks, files = [], {}
    for file in state.files:
        entries = log.read(plan, state.keep.name, file)
        if not entries.starts.size:
            continue
        blocks.append(replica.load(entries, file.level))
        files[blocks[-1].number] = [file]
    replica.adopt(blocks)
    return replica, files


def _plan_path(log: AskLog, name: str) -> Path:
    return log.root / "plans" / f"muntin-{log._run}-{name}.plan"  # noqa: SLF001 - its own module's


def open_log(root: Path) -> tuple[AskLog, int]:
    """The log of a checkpoint that this process only reads, and how many streams the run has."""
    content = read_marker(root)
    if content is None:
        raise CheckpointError(
            f"{root} is not the checkpoint of a run", hint="give the folder of checkpoint="
        )
    return AskLog(root, content["run"]), len(content.get("streams", ())) or 1


def grown(state: KeptState, files: Sequence[KeptFile], rows: int) -> KeptState:
    """A keep's state with the files of one more batch."""
    taken = state.taken + sum(file.entries for file in files)
    held = (*state.files, *(file for file in files if file.entries))
    return replace(state, files=held, rows=state.rows + rows, taken=taken)


class LogReader:
    """The keeps of a log that another process may go on writing: each question reads the newest.

    Files that were read before are not read again.
    """

    def __init__(self, log: AskLog) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._batch: int | None = None
        self._replicas: dict[str, tuple[Replica, dict[str, Block]]] = {}
        self._versions = Versions()

    def versions(self) -> Versions:
        """The newest versions, those of a batch that was committed a moment ago included."""
        batches = self._log.batches()
        if batches and batches[0] == self._batch:
            return self._versions
        with self._lock:
            for attempt in range(_TRIES):
                manifest = self._log.newest()
                if manifest is None:
                    raise CheckpointError(
                        f"the run in {self._log.root} keeps nothing to be asked, or has not kept "
                        "a batch yet",
                        hint="keep something: CREATE KEEP ... in the SQL file or with muntin add; "
                        "in Python, run.keep(...) or keeps=",
                    )
                try:
                    return self._read(manifest)
                except CheckpointError:
                    # A run that goes on may have let go of the files meanwhile.
                    if attempt == _TRIES - 1:
                        raise
        raise AssertionError("unreachable")

    def _read(self, manifest: Manifest) -> Versions:
        read = {state.keep.name: self._replica(state, manifest.batch) for state in manifest.keeps}
        self._replicas = read
        self._versions = Versions(
            {each.kept.name.lower(): each.version for each, _ in read.values()}
        )
        self._batch = manifest.batch
        return self._versions

    def _replica(self, state: KeptState, batch: int) -> tuple[Replica, dict[str, Block]]:
        """A keep as of a batch, with the blocks of its files."""
        name = state.keep.name
        known = self._replicas.get(name)
        if known is None:
            known = opened(self._log, replace(state, files=()), batch)[0], {}
        replica, before = known
        blocks: dict[str, Block] = {}
        for file in state.files:
            if file.name in before:
                blocks[file.name] = before[file.name]
                continue
            entries = self._log.read(replica.kept.plan, name, file)
            if entries.starts.size:
                blocks[file.name] = replica.load(entries, file.level)
        replica.moment, replica.first = state.moment(batch), state.first
        replica.rows, replica.taken = state.rows, state.taken
        replica.adopt(list(blocks.values()))
        return replica, blocks


def asking_of(folder: str | os.PathLike[str]) -> Asking:
    """What answers questions from the log of a checkpoint, held by a run or not, as it grows."""
    log, streams = open_log(local_path(folder))
    reader = LogReader(log)
    reader.versions()
    return Asking(reader.versions, several=streams > 1)
