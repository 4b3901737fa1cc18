"""What several streams in this process keep to be asked, as one version of all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from muntin.engine.watermarks import StreamClock
from muntin.errors import Problem, QueryError, UnknownQueryError, did_you_mean
from muntin.queries import AnyKeep, CreateKeep, DropKeep
from muntin.streams.keeper import Keeper, Taken
from muntin.streams.live import LiveEngine
from muntin.synopses import Moment, Version, Versions
from muntin.synopses.keeps.latest_rows import RowVersion


def keeper_of(engine: LiveEngine) -> Keeper:
    """The keeps of the stream of an engine: none yet."""
    plan = engine.plan
    return Keeper(plan.source, plan.timeline.column, plan.zone, engine.tables)


class Keepers:
    """The keeps of several streams; no two of them have the same name."""

    def __init__(self, keepers: Mapping[str, Keeper]) -> None:
        self._keepers = dict(keepers)
        self._batches = 0
        self.versions = Versions()

    def keeps(self) -> list[AnyKeep]:
        """The keeps of all streams, stream by stream."""
        return [keep for keeper in self._keepers.values() for keep in keeper.keeps()]

    def explain(self) -> str:
        """What is kept, and what that takes."""
        return "\n".join(filter(None, (keeper.explain() for keeper in self._keepers.values())))

    def apply(self, statements: Iterable[CreateKeep | DropKeep]) -> None:
        """Let keeps join and leave: all of them, or none if one is refused."""
        homes = {
            keep.name.lower(): name
            for name, keeper in self._keepers.items()
            for keep in keeper.keeps()
        }
        routed: dict[str, list[CreateKeep | DropKeep]] = {}
        for statement in statements:
            home = self._home(statement, homes)
            routed.setdefault(home, []).append(statement)
            if isinstance(statement, DropKeep):
                homes.pop(statement.name.lower())
            else:
                homes[statement.keep.name.lower()] = home
        changed = {name: self._keepers[name].changed(some) for name, some in routed.items()}
        for name, members in changed.items():
            self._keepers[name].adopt(members)
        self._publish()

    def _home(self, statement: CreateKeep | DropKeep, homes: Mapping[str, str]) -> str:
        if isinstance(statement, DropKeep):
            if statement.name.lower() not in homes:
                hint = did_you_mean(statement.name, [keep.name for keep in self.keeps()])
                message = f"there is no keep named {statement.name}"
                raise UnknownQueryError(message, hint=hint or "nothing is kept")
            return homes[statement.name.lower()]
        keep = statement.keep
        found = {name.lower(): name for name in self._keepers}.get(keep.source.lower())
        if len(self._keepers) == 1:
            found = next(iter(self._keepers))
        if found is None:
            hint = did_you_mean(keep.source, self._keepers)
            message = f"there is no stream {keep.source!r}"
            raise QueryError([Problem(message, hint, keep.name)])
        if homes.get(keep.name.lower(), found) != found:
            message = f"there is already a keep named {keep.name}, on another stream"
            raise QueryError([Problem(message, "use another name", keep.name)])
        return found

    def update_table(self, name: str, table: pa.Table) -> None:
        """Join rows that come from now on with another version of a table."""
        for keeper in self._keepers.values():
            keeper.update_table(name, table)

    def prepared(self, stream: str, batch: pa.Table, watermark: int | None) -> Taken:
        """What the keeps of a stream make of a batch; nothing is changed."""
        return self._keepers[stream].prepared(batch, watermark)

    def commit(
        self, clocks: Mapping[str, StreamClock], stream: str, made: Taken, rows: int
    ) -> None:
        """Make what was prepared the newest version, and move all streams to where they are."""
        self._batches += 1
        for name, keeper in self._keepers.items():
            moment = self._moment(clocks[name])
            if name == stream:
                keeper.commit(made, moment, rows)
            else:
                keeper.advance(moment)
        self._publish()

    def advance(self, clocks: Mapping[str, StreamClock]) -> None:
        """Go on without rows."""
        for name, keeper in self._keepers.items():
            keeper.advance(self._moment(clocks[name]))
        self._publish()

    def moments(self, clocks: Mapping[str, StreamClock]) -> dict[str, Moment]:
        """Where each stream is."""
        return {name: self._moment(clock) for name, clock in clocks.items()}

    def _moment(self, clock: StreamClock) -> Moment:
        return Moment(self._batches, clock.seen, clock.watermark)

    def _publish(self) -> None:
        slices: dict[str, Version] = {}
        rows: dict[str, RowVersion] = {}
        for keeper in self._keepers.values():
            slices |= keeper.versions.by_name
            rows |= keeper.versions.rows
        self.versions = Versions(slices, rows)

    def snapshot(self) -> Any:
        """What is kept, for `restore`."""
        held = {name: keeper.snapshot(None)[0] for name, keeper in self._keepers.items()}
        return self._batches, held

    def restore(self, snapshot: Any) -> None:
        """Go on from a snapshot."""
        self._batches, held = snapshot
        for name, each in held.items():
            self._keepers[name].restore([each])
        self._publish()
