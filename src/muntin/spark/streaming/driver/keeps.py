"""What a run keeps to be asked: which keeps the next batch has, their log, and their replicas.

The batch's thread commits files to the log. A thread of its own reads them into replicas, puts
small files together, and lets go of what has left the span; readers ask the replicas.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from queue import SimpleQueue
from typing import Any
from uuid import uuid4

import pyarrow as pa

from muntin.errors import Problem, QueryError, UnknownQueryError, did_you_mean
from muntin.expressions.zones import Zone
from muntin.plan import SharedPlan
from muntin.queries import AnyKeep, CreateKeep, DropKeep, Keep, keeps
from muntin.queries.asking.keeps import slice_keep
from muntin.spark.streaming.checkpoint.asks import (
    RETAINED,
    AskLog,
    KeepRecord,
    KeptFile,
    KeptState,
    Manifest,
    grown,
    opened,
    write_kept,
)
from muntin.spark.streaming.checkpoint.checkpoint import Checkpoint
from muntin.spark.streaming.checkpoint.records import BatchOutcome, BatchRecord
from muntin.spark.streaming.driver.inputs import StreamInput
from muntin.spark.streaming.driver.tables import StaticTables
from muntin.synopses import Asking, Replica, Versions, plan_keep

_logger = logging.getLogger("muntin.spark")
_Entries = Sequence[tuple[str, KeptFile]]


class RunKeeps:
    """The keeps of a run."""

    def __init__(
        self,
        inputs: Sequence[StreamInput],
        checkpoint: Checkpoint,
        tables: StaticTables,
        zone: Zone,
    ) -> None:
        self._inputs, self._checkpoint, self._tables, self._zone = inputs, checkpoint, tables, zone
        self.log = AskLog(checkpoint.root, checkpoint.run)
        self.lock = threading.RLock()
        self.version, self._declared = self.log.declared()
        self._plans: dict[str, SharedPlan] = {}
        self._manifest = self.log.resume(checkpoint.records, checkpoint.last_committed())
        if self.log.folder.exists():
            self.log.clean(self._manifest)
        self._replicas = Replicas(self.log, self._manifest)
        self.asking = Asking(self._replicas.versions, self._table_schemas, several=len(inputs) > 1)

    def keeps(self) -> list[Keep]:
        """What the next batch keeps, in the order it joined."""
        return [slice_keep(keeps(each.sql)[0]) for each in self._declared]

    def apply(
        self,
        statements: Iterable[CreateKeep | DropKeep],
        shipped: Sequence[frozenset[str]] | None,
    ) -> bool:
        """Make a change durable, or refuse it; it takes effect with the next batch.

        Where a keep reads a column that is not among those ``shipped`` of its stream, nothing is
        done, and the answer is False.
        """
        with self.lock:
            found = {keeps(each.sql)[0].name.lower(): each for each in self._declared}
            for statement in statements:
                if isinstance(statement, DropKeep):
                    _remove(found, statement.name)
                else:
                    name = statement.keep.name.lower()
                    found[name] = self._record(statement, found.get(name))
            if shipped is not None and not all(
                shipped[each.stream].issuperset(self._plan(each).columns())
                for each in found.values()
            ):
                return False
            self.log.declare(self.version + 1, list(found.values()))
            self.version, self._declared = self.version + 1, list(found.values())
            return True

    def start(self, asked: Sequence[AnyKeep] | None) -> None:
        """Begin with the keeps of the checkpoint; those that the caller names beside them join."""
        held = {each.name.lower(): each for each in self.keeps()}
        fresh = [each for each in asked or () if held.get(each.name.lower()) != each]
        if fresh:
            self.apply([CreateKeep(each, each.name.lower() in held) for each in fresh], None)

    def _record(self, statement: CreateKeep, before: KeepRecord | None) -> KeepRecord:
        keep = slice_keep(statement.keep)
        if before is not None and not statement.replace:
            hint = "use another name, or CREATE OR REPLACE KEEP"
            message = f"there is already a keep named {keep.name}"
            raise QueryError([Problem(message, hint=hint, query=keep.name)])
        stream = self._stream(keep)
        given = self._inputs[stream]
        kept = plan_keep(
            keep,
            given.source.schema,
            given.timeline.column,
            tables=self._table_schemas(),
            zone=self._zone,
        )
        plan = self._checkpoint.save_plan(kept.plan)
        self._plans[plan] = kept.plan
        return KeepRecord(f"{keep.name}-{uuid4().hex[:8]}", keep.sql(), plan, stream)

    def _stream(self, keep: Keep) -> int:
        names = [given.name for given in self._inputs]
        for number, name in enumerate(names):
            if name is None or name.lower() == keep.source.lower():
                return number
        hint = did_you_mean(keep.source, [str(name) for name in names])
        raise QueryError([Problem(f"there is no input {keep.source!r}", hint, keep.name)])

    def _table_schemas(self) -> Mapping[str, pa.Schema]:
        return self._tables.schemas

    def _plan(self, keep: KeepRecord) -> SharedPlan:
        if keep.plan not in self._plans:
            self._plans[keep.plan] = self._checkpoint.plan(keep.plan)
        return self._plans[keep.plan]

    def columns(self, stream: int, record: BatchRecord | None) -> set[str]:
        """The columns of a stream that are kept by the next batch, or by one to be run again."""
        again = [KeepRecord(**each) for each in (record.keeps if record else ())]
        with self.lock:
            listed = [*self._declared, *again]
            return {
                name
                for each in listed
                if each.stream == stream
                for name in self._plan(each).columns()
            }

    def plans(self) -> list[str]:
        """The plans that must not be forgotten."""
        with self.lock:
            named = [state.keep.plan for state in self._manifest.keeps]
            return [*named, *(each.plan for each in self._declared)]

    def decide(self, outcome: BatchOutcome) -> list[dict[str, Any]]:
        """What the next batch keeps, for its record."""
        with self.lock:
            known = {state.keep.name: state.keep for state in self._manifest.keeps}
            listed = [
                known.get(each.name) or replace(each, since=outcome.streams[each.stream].seen)
                for each in self._declared
            ]
            return [asdict(each) for each in listed]

    def commit(
        self, record: BatchRecord, before: BatchOutcome, outcome: BatchOutcome, entries: _Entries
    ) -> None:
        """Commit what tasks kept of a batch; a batch that is run again commits the same."""
        if not record.keeps and not self._manifest.keeps:
            return
        with self.lock:
            known = {state.keep.name: state for state in self._current().keeps}
            states = []
            for each in record.keeps:
                keep = KeepRecord(**each)
                state = known.get(keep.name) or KeptState(keep)
                files = [file for name, file in entries if name == keep.name]
                stream = outcome.streams[keep.stream]
                state = grown(state, files, stream.rows - before.streams[keep.stream].rows)
                states.append(replace(state, latest=stream.seen, watermark=stream.watermark))
            for name in known.keys() - {state.keep.name for state in states}:
                self._replicas.discard(record.batch, known[name])
            self._manifest = Manifest(record.batch, tuple(states))
            self.log.write(self._manifest)
        self._replicas.take(self._manifest, entries)

    def _current(self) -> Manifest:
        """The manifest of the last batch, with files that were put together since."""
        return self._replicas.compacted(self._manifest)

    def explain(self) -> str:
        """What is kept, and what that takes, a line per keep."""
        return self._replicas.explain()

    def facts(self) -> list[dict[str, Any]]:
        """The same by name, for every keep; those that wait for their first batch are empty."""
        known = {each["name"]: each for each in self._replicas.facts()}
        return [
            known.get(keep.name, {"name": keep.name, "sql": str(keep), "entries": 0, "bytes": 0})
            for keep in self.keeps()
        ]

    def close(self) -> None:
        """End the thread that reads the log."""
        self._replicas.close()


class Replicas:
    """The replicas of a log, which a thread of its own brings up to date."""

    def __init__(self, log: AskLog, manifest: Manifest) -> None:
        self._log = log
        self._replicas: dict[str, Replica] = {}
        self._files: dict[str, dict[int, list[KeptFile]]] = {}
        self._swaps: dict[str, list[tuple[set[str], list[KeptFile]]]] = {}
        # The first slice that ever had a row, as of the files that were let go.
        self._firsts: dict[str, int | None] = {}
        self._garbage: list[tuple[int, str, str]] = []
        self._lock = threading.Lock()
        for state in manifest.keeps:
            replica, files = opened(log, state, manifest.batch)
            self._replicas[state.keep.name], self._files[state.keep.name] = replica, files
        self._versions = Versions()
        self._publish(manifest)
        self._queue: SimpleQueue[tuple[Manifest, _Entries] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self.failure: BaseException | None = None

    def versions(self) -> Versions:
        """The newest versions; what went wrong with the thread is raised here."""
        if self.failure is not None:
            raise self.failure
        return self._versions

    def take(self, manifest: Manifest, entries: _Entries) -> None:
        """Bring a committed batch to the replicas, soon."""
        self._queue.put((manifest, list(entries)))
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="muntin-asks", daemon=True)
            self._thread.start()

    def compacted(self, manifest: Manifest) -> Manifest:
        """The same manifest, with files that were put together instead of those they replace."""
        with self._lock:
            swaps, self._swaps = self._swaps, {}
            firsts = dict(self._firsts)
        states = []
        for state in manifest.keeps:
            files = state.files
            for gone, made in swaps.get(state.keep.name, ()):
                held = [file for file in files if file.name not in gone]
                # Those of higher levels are older.
                files = tuple(sorted([*held, *made], key=lambda file: -file.level))
                self._garbage += [(manifest.batch, state.keep.name, name) for name in gone]
            first = firsts.get(state.keep.name, state.first)
            states.append(replace(state, files=files, first=first))
        named = {state.keep.name for state in manifest.keeps}
        for name in swaps.keys() - named:
            # Put together for a keep that was dropped meanwhile.
            unclaimed = [file.name for _, made in swaps[name] for file in made]
            self._garbage += [(manifest.batch, name, each) for each in unclaimed]
        self._collect(manifest.batch)
        return replace(manifest, keeps=tuple(states))

    def discard(self, batch: int, state: KeptState) -> None:
        """Let go of all files of a keep that was dropped."""
        self._garbage += [(batch, state.keep.name, file.name) for file in state.files]

    def _collect(self, batch: int) -> None:
        """Remove files that no manifest names any more."""
        old = [each for each in self._garbage if each[0] + RETAINED < batch]
        self._garbage = [each for each in self._garbage if each[0] + RETAINED >= batch]
        for _, keep, name in old:
            self._log.path(keep, name).unlink(missing_ok=True)

    def _work(self) -> None:
        while True:
            given = self._queue.get()
            if given is None:
                return
            try:
                self._apply(*given)
            except BaseException as error:
                _logger.exception("what is kept to be asked cannot be read")
                self.failure = error
                return

    def _apply(self, manifest: Manifest, entries: _Entries) -> None:
        for state in manifest.keeps:
            name = state.keep.name
            if name not in self._replicas:
                fresh = replace(state, files=(), rows=0, taken=0, first=None)
                self._replicas[name], self._files[name] = opened(self._log, fresh, manifest.batch)
            replica, files = self._replicas[name], self._files[name]
            own = [file for keep, file in entries if keep == name and file.entries]
            plan = replica.kept.plan
            partials = [self._log.read(plan, name, file) for file in own]
            rows = state.rows - replica.rows
            known = {block.number for block in replica.version.blocks}
            replica.apply(partials, state.moment(manifest.batch), rows)
            self._refile(name, replica, files, own, known)
        gone = self._replicas.keys() - {state.keep.name for state in manifest.keeps}
        for name in gone:
            del self._replicas[name], self._files[name]
        self._publish(manifest)

    def _refile(
        self,
        name: str,
        replica: Replica,
        files: dict[int, list[KeptFile]],
        own: list[KeptFile],
        known: set[int],
    ) -> None:
        """File the blocks that are new, and let go of the files of those that are gone."""
        blocks = {block.number: block for block in replica.version.blocks}
        gone = {file.name for number in files.keys() - blocks.keys() for file in files[number]}
        for number in files.keys() - blocks.keys():
            del files[number]
        made: list[KeptFile] = []
        fresh = [number for number in blocks if number not in known]
        if len(fresh) == 1 and blocks[fresh[0]].level == 0:
            files[fresh[0]] = own
            fresh = []
        elif fresh:
            # Blocks were put together, and the batch's own files went into them.
            gone |= {file.name for file in own}
        for number in fresh:
            block = blocks[number]
            written = write_kept(
                self._log.folder / "data" / name,
                f"c{block.level}-{uuid4().hex}.arrow",
                replica.dump(block),
            )
            files[number] = [replace(written, level=block.level)]
            made += files[number]
        with self._lock:
            self._firsts[name] = replica.first
            if gone or made:
                self._swaps.setdefault(name, []).append((gone, made))

    def _publish(self, manifest: Manifest) -> None:
        by_name = {}
        for state in manifest.keeps:
            replica = self._replicas[state.keep.name]
            by_name[replica.kept.name.lower()] = replica.version
        self._versions = Versions(by_name)

    def explain(self) -> str:
        """What is kept, and what that takes."""
        return "\n".join(replica.explain() for replica in list(self._replicas.values()))

    def facts(self) -> list[dict[str, Any]]:
        """The same by name, for every keep."""
        return [replica.facts() for replica in list(self._replicas.values())]

    def close(self) -> None:
        """End the thread, after what is under way."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None


def _remove(found: dict[str, KeepRecord], name: str) -> None:
    if name.lower() not in found:
        known = [keeps(each.sql)[0].name for each in found.values()]
        hint = did_you_mean(name, known) or "nothing is kept"
        raise UnknownQueryError(f"there is no keep named {name}", hint=hint)
    del found[name.lower()]
