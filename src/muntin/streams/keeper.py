"""What a stream in this process keeps to be asked: one replica per keep, fed with its batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from muntin.display import count
from muntin.engine.rows.batches import as_table, outputs
from muntin.engine.rows.stage_a import StageA
from muntin.engine.slices.partials import PartialBatch
from muntin.engine.wire import from_bytes, to_bytes
from muntin.errors import Problem, QueryError, UnknownQueryError, did_you_mean
from muntin.expressions.zones import Zone
from muntin.queries import CreateKeep, DropKeep, Keep
from muntin.synopses import Moment, Replica, Versions, plan_keep
from muntin.synopses.block import Block


@dataclass
class _Member:
    """A keep of the stream: its replica, and the stage A that feeds it."""

    number: int
    replica: Replica
    stage: StageA


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
        self._members: dict[str, _Member] = {}
        self._next = 0
        self.moment = Moment()
        self.versions = Versions()

    def keeps(self) -> list[Keep]:
        """The keeps, in the order they joined."""
        return [member.replica.kept.keep for member in self._members.values()]

    def schemas(self) -> dict[str, pa.Schema]:
        """The columns of the tables that keeps may join."""
        return {name: table.schema for name, table in self._tables.items()}

    def apply(self, statements: Iterable[CreateKeep | DropKeep]) -> None:
        """Let keeps join and leave: all of them, or none if one is refused."""
        members = dict(self._members)
        for statement in statements:
            if isinstance(statement, DropKeep):
                _remove(members, statement.name)
            else:
                self._add(members, statement)
        self._members = members
        self._publish()

    def _add(self, members: dict[str, _Member], statement: CreateKeep) -> None:
        keep = statement.keep
        name = keep.name.lower()
        if name in members and not statement.replace:
            hint = "use another name, or CREATE OR REPLACE KEEP"
            message = f"there is already a keep named {members[name].replica.kept.name}"
            raise QueryError([Problem(message, hint=hint, query=keep.name)])
        kept = plan_keep(keep, self._schema, self._time, tables=self.schemas(), zone=self._zone)
        members[name] = self._member(Replica(kept, self.moment.latest, self.moment))

    def _member(self, replica: Replica) -> _Member:
        self._next += 1
        return _Member(self._next, replica, StageA(replica.kept.plan, self._tables))

    def update_table(self, name: str, table: pa.Table) -> None:
        """Join rows that come from now on with another version of a table."""
        known = {each.lower(): each for each in self._tables}
        self._tables[known.get(name.lower(), name)] = table
        for member in self._members.values():
            member.stage = StageA(member.replica.kept.plan, self._tables)

    def prepared(
        self, batch: pa.Table, watermark: int | None, threads: int = 1
    ) -> list[tuple[Replica, list[PartialBatch]]]:
        """What each keep makes of the rows of a batch that are not late; nothing is changed."""
        made = []
        for member in self._members.values():
            plan = member.replica.kept.plan
            blocks = outputs(member.stage, as_table(batch, plan), 0, watermark, threads)
            made.append((member.replica, [each.partials[0] for each in blocks]))
        return made

    def commit(
        self, made: Sequence[tuple[Replica, list[PartialBatch]]], moment: Moment, rows: int
    ) -> None:
        """Make what was prepared the newest version of every keep."""
        self.moment = moment
        for replica, partials in made:
            replica.apply(partials, moment, rows)
        self._publish()

    def advance(self, moment: Moment) -> None:
        """Go on without rows."""
        self.moment = moment
        for member in self._members.values():
            member.replica.apply([], moment)
        self._publish()

    def _publish(self) -> None:
        self.versions = Versions(
            {name: member.replica.version for name, member in self._members.items()}
        )

    def explain(self) -> str:
        """What is kept, and what that takes, a line per keep."""
        lines = []
        for member in self._members.values():
            replica, version = member.replica, member.replica.version
            rate = replica.taken / replica.rows if replica.rows else 0.0
            near = "; raw rows would cost as much" if rate > 0.9 else ""
            held = f"{count(version.entries, 'entry')}, {version.nbytes:,} bytes"
            lines.append(f"{replica.kept.keep}\n  {held}, {rate:.2f} entries per row{near}")
        return "\n".join(lines)

    def snapshot(self, earlier: Mapping[int, set[int]] | None) -> tuple[Any, dict[int, set[int]]]:
        """What is kept, for `restored`; blocks that an earlier one had are only named."""
        held = []
        numbers: dict[int, set[int]] = {}
        for member in self._members.values():
            replica = member.replica
            known = (earlier or {}).get(member.number, set())
            blocks = [
                (each.number, each.level, None if each.number in known else _bytes(replica, each))
                for each in replica.version.blocks
            ]
            numbers[member.number] = {each.number for each in replica.version.blocks}
            facts = (replica.since, replica.rows, replica.taken, replica.first)
            held.append((member.number, replica.kept, facts, blocks))
        return (self._next, self.moment, held), numbers

    def restore(self, snapshots: Sequence[Any]) -> None:
        """Go on from a snapshot, or from several: a whole one, then those since."""
        stored: dict[tuple[int, int], bytes] = {}
        for _, _, held in snapshots:
            for number, _, _, blocks in held:
                stored.update({(number, at): data for at, _, data in blocks if data is not None})
        following, self.moment, held = snapshots[-1]
        self._members = {}
        for number, kept, (since, *facts), blocks in held:
            replica = Replica(kept, since, self.moment, *facts)
            loaded = [
                replica.load(from_bytes(kept.plan, stored[number, at])[0], level)
                for at, level, _ in blocks
            ]
            replica.commit(loaded, self.moment)
            stage = StageA(kept.plan, self._tables)
            self._members[kept.name.lower()] = _Member(number, replica, stage)
        self._next = following
        self._publish()


def _remove(members: dict[str, _Member], name: str) -> None:
    if name.lower() not in members:
        known = [member.replica.kept.name for member in members.values()]
        hint = did_you_mean(name, known) or "nothing is kept"
        raise UnknownQueryError(f"there is no keep named {name}", hint=hint)
    del members[name.lower()]


def _bytes(replica: Replica, block: Block) -> bytes:
    """A block's entries with their keys."""
    entries = replica.dump(block)
    with block.lock:
        return to_bytes([entries])
