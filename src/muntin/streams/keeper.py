"""What a stream in this process keeps to be asked: one replica per keep, fed with its batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from muntin.engine.rows.batches import as_table, outputs
from muntin.engine.rows.stage_a import StageA
from muntin.engine.slices.partials import PartialBatch
from muntin.engine.wire import from_bytes, to_bytes
from muntin.errors import Problem, QueryError, UnknownQueryError, did_you_mean
from muntin.expressions.zones import Zone
from muntin.queries import AnyKeep, CreateKeep, DropKeep, RowKeep
from muntin.synopses import Kept, Moment, Replica, Versions, plan_keep
from muntin.synopses.keeps.block import Block
from muntin.synopses.keeps.latest_rows import KeptRows, RowReplica, plan_rows


@dataclass
class Taken:
    """What keeps made of a batch: partials, the latest rows, and values that failed, by keep."""

    partials: list[tuple[Replica, list[PartialBatch]]] = field(default_factory=list)
    rows: list[tuple[RowReplica, pa.Table]] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)


@dataclass
class _Member:
    """A keep of the stream: its replica, and the stage A that feeds it."""

    number: int
    replica: Replica
    stage: StageA


@dataclass(frozen=True)
class Members:
    """The keeps of a stream by their names in lower case: of slices, and of the latest rows."""

    slices: dict[str, _Member] = field(default_factory=dict)
    rows: dict[str, RowReplica] = field(default_factory=dict)

    def kept(self, name: str) -> Kept | KeptRows | None:
        """The keep of a name."""
        if name.lower() in self.slices:
            return self.slices[name.lower()].replica.kept
        found = self.rows.get(name.lower())
        return None if found is None else found.kept

    def names(self) -> list[str]:
        """All names, as they were given."""
        sliced = [member.replica.kept.name for member in self.slices.values()]
        return [*sliced, *(replica.kept.name for replica in self.rows.values())]

    def remove(self, name: str) -> None:
        """Let a keep leave."""
        if self.kept(name) is None:
            hint = did_you_mean(name, self.names()) or "nothing is kept"
            raise UnknownQueryError(f"there is no keep named {name}", hint=hint)
        self.slices.pop(name.lower(), None)
        self.rows.pop(name.lower(), None)


class Keeper:
    """The keeps of one stream, which join and leave between batches.

    Rows of a batch go into every keep's own partials before the queries see the batch, and become
    a version of all keeps at once after it.
    """

    def __init__(
        self, schema: pa.Schema, time: str, zone: Zone, tables: Mapping[str, pa.Table]
    ) -> None:
        self._schema = schema
        self._time = time
        self._zone = zone
        self._tables = dict(tables)
        self._members = Members()
        self._next = 0
        self.moment = Moment()
        self.versions = Versions()

    def keeps(self) -> list[AnyKeep]:
        """The keeps, in the order they joined; those of rows come last."""
        sliced = [member.replica.kept.keep for member in self._members.slices.values()]
        return [*sliced, *(replica.kept.keep for replica in self._members.rows.values())]

    def schemas(self) -> dict[str, pa.Schema]:
        """The columns of the tables that keeps may join."""
        return {name: table.schema for name, table in self._tables.items()}

    def apply(self, statements: Iterable[CreateKeep | DropKeep]) -> None:
        """Let keeps join and leave: all of them, or none if one is refused."""
        self.adopt(self.changed(statements))

    def changed(self, statements: Iterable[CreateKeep | DropKeep]) -> Members:
        """The keeps as they would be after some joined and left."""
        members = Members(dict(self._members.slices), dict(self._members.rows))
        for statement in statements:
            if isinstance(statement, DropKeep):
                members.remove(statement.name)
            else:
                self._add(members, statement)
        return members

    def adopt(self, members: Members) -> None:
        """Go on with what `changed` gave."""
        self._members = members
        self._publish()

    def _add(self, members: Members, statement: CreateKeep) -> None:
        keep = statement.keep
        name = keep.name.lower()
        before = members.kept(name)
        if before is not None:
            if not statement.replace:
                hint = "use another name, or CREATE OR REPLACE KEEP"
                message = f"there is already a keep named {before.name}"
                raise QueryError([Problem(message, hint=hint, query=keep.name)])
            members.remove(name)
        if isinstance(keep, RowKeep):
            rows = plan_rows(keep, self._schema, self._time, self._zone)
            members.rows[name] = RowReplica(rows, self.moment.latest, self.moment)
            return
        kept = plan_keep(keep, self._schema, self._time, tables=self.schemas(), zone=self._zone)
        members.slices[name] = self._member(Replica(kept, self.moment.latest, self.moment))

    def _member(self, replica: Replica) -> _Member:
        self._next += 1
        return _Member(self._next, replica, StageA(replica.kept.plan, self._tables))

    def update_table(self, name: str, table: pa.Table) -> None:
        """Join rows that come from now on with another version of a table."""
        known = {each.lower(): each for each in self._tables}
        self._tables[known.get(name.lower(), name)] = table
        for member in self._members.slices.values():
            member.stage = StageA(member.replica.kept.plan, self._tables)

    def prepared(self, batch: pa.Table, watermark: int | None, threads: int = 1) -> Taken:
        """What each keep makes of the rows of a batch that are not late; nothing is changed."""
        made = Taken()
        for member in self._members.slices.values():
            kept = member.replica.kept
            blocks = list(outputs(member.stage, as_table(batch, kept.plan), 0, watermark, threads))
            made.partials.append((member.replica, [each.partials[0] for each in blocks]))
            failed = sum(each.counts.errors.total() for each in blocks)
            if failed:
                made.errors[kept.counted_as] = failed
        for replica in self._members.rows.values():
            made.rows.append((replica, replica.kept.rows_of(batch, watermark)))
        return made

    def commit(self, made: Taken, moment: Moment, rows: int) -> None:
        """Make what was prepared the newest version of every keep."""
        self.moment = moment
        for replica, partials in made.partials:
            replica.apply(partials, moment, rows)
        for latest, some in made.rows:
            latest.apply(some, moment)
        self._publish()

    def advance(self, moment: Moment) -> None:
        """Go on without rows."""
        self.moment = moment
        for member in self._members.slices.values():
            member.replica.apply([], moment)
        for latest in self._members.rows.values():
            latest.apply(latest.version.tables[0].slice(0, 0), moment)
        self._publish()

    def _publish(self) -> None:
        self.versions = Versions(
            {name: member.replica.version for name, member in self._members.slices.items()},
            {name: latest.version for name, latest in self._members.rows.items()},
        )
        # Whoever asks first need not make it.
        _ = self.versions.kept

    def explain(self) -> str:
        """What is kept, and what that takes."""
        sliced = [member.replica.explain() for member in self._members.slices.values()]
        return "\n".join([*sliced, *(each.explain() for each in self._members.rows.values())])

    def snapshot(self, earlier: Mapping[int, set[int]] | None) -> tuple[Any, dict[int, set[int]]]:
        """What is kept, for `restored`; blocks that an earlier one had are only named."""
        held = []
        numbers: dict[int, set[int]] = {}
        for member in self._members.slices.values():
            replica = member.replica
            known = (earlier or {}).get(member.number, set())
            blocks = [
                (each.number, each.level, None if each.number in known else _bytes(replica, each))
                for each in replica.version.blocks
            ]
            numbers[member.number] = {each.number for each in replica.version.blocks}
            facts = (replica.since, replica.rows, replica.taken, replica.first)
            held.append((member.number, replica.kept, facts, blocks))
        rows = [(each.kept, each.version.since, each.version.rows) for each in self._latest()]
        return (self._next, self.moment, held, rows), numbers

    def _latest(self) -> list[RowReplica]:
        return list(self._members.rows.values())

    def restore(self, snapshots: Sequence[Any]) -> None:
        """Go on from a snapshot, or from several: a whole one, then those since."""
        stored: dict[tuple[int, int], bytes] = {}
        for _, _, held, _ in snapshots:
            for number, _, _, blocks in held:
                stored.update({(number, at): data for at, _, data in blocks if data is not None})
        following, self.moment, held, rows = snapshots[-1]
        self._members = Members()
        for number, kept, (since, *facts), blocks in held:
            replica = Replica(kept, since, self.moment, *facts)
            loaded = [
                replica.load(from_bytes(kept.plan, stored[number, at])[0], level)
                for at, level, _ in blocks
            ]
            replica.commit(loaded, self.moment)
            stage = StageA(kept.plan, self._tables)
            self._members.slices[kept.name.lower()] = _Member(number, replica, stage)
        for latest, since, table in rows:
            self._members.rows[latest.name.lower()] = RowReplica(latest, since, self.moment, table)
        self._next = following
        self._publish()


def _bytes(replica: Replica, block: Block) -> bytes:
    """A block's entries with their keys."""
    entries = replica.dump(block)
    with block.lock:
        return to_bytes([entries])
