"""The engine of queries over rows with lifetimes: batches of several streams in, results out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from muntin.errors import DataError
from muntin.operators.graph import Graph, Step, Streams, is_mixed
from muntin.operators.history import History, sources, whole_joins
from muntin.operators.joins.join import WindowJoin
from muntin.operators.output import Arrivals, ChangeLog, Endings, Finals, Output
from muntin.operators.relation import BEGINNING, RelationLeaf, RelationRows
from muntin.operators.rows import ALWAYS, NEVER, Changes
from muntin.operators.select import single
from muntin.operators.state.segments import Segment
from muntin.operators.state.snapshot import load
from muntin.operators.state.stored import kept, snapshot_bytes, state_of
from muntin.operators.window_ends import Differences, WindowEnds
from muntin.plan.operators import RowFinal, RowPlan, leaves


@dataclass(frozen=True)
class RowStatistics:
    """What an engine has done and keeps.

    Attributes:
        rows: Rows given, by stream.
        results: Rows shown, by query.
        errors: Expressions that failed, by query; their values are NULL.
        kept: Rows that operators keep, by query; what queries share is counted for each.
    """

    rows: dict[str, int]
    results: dict[str, int]
    errors: dict[str, int]
    kept: dict[str, int]


class RowEngine:
    """Runs queries whose answers are rows with lifetimes.

    Selections, unions and joins show a row in the batch that completes it. All else takes rows in
    order, below the least watermark of the streams that a query reads.

    Args:
        plan: The queries and their streams.
        threads: As many threads as a large batch may take.
        assigned: Which joins share a store, as a snapshot says; decided here if not given.
        since: The first instant at which each query is complete, as a snapshot says.
        newcomers: Queries that took rows of the past when they joined, as a snapshot says.
    """

    def __init__(
        self,
        plan: RowPlan,
        threads: int = 1,
        assigned: Sequence[int] | None = None,
        since: Mapping[str, int] | None = None,
        newcomers: Collection[str] = (),
    ) -> None:
        self.threads = threads
        self._watermarks = dict.fromkeys(plan.streams, ALWAYS)
        self._seen: dict[str, int] = {}
        self._rows = dict.fromkeys(plan.streams, 0)
        self._results: dict[str, int] = {}
        self._since: dict[str, int] = {}
        # The largest time of each stream when a query joined.
        self._joined: dict[str, dict[str, int]] = {}
        self._newcomers = set(newcomers)
        # What newcomers have to say about the past, until the next batch.
        self._early: dict[str, pa.Table] = {}
        # How often their values of the past failed: what was told, and what is not yet.
        self._failed: Counter[str] = Counter()
        self._untold: dict[str, int] = {}
        self._outputs: dict[str, Output] = {}
        self._relations: dict[str, RelationRows] = {}
        self._is_closed = False
        self._plan = RowPlan(plan.streams, ())
        begin = {final.name: ALWAYS for final in plan.finals} | dict(since or {})
        graph = Graph(plan, {}, begin, (), assigned, self._newcomers)
        self._install(plan, graph, begin)

    @property
    def plan(self) -> RowPlan:
        """The queries that run."""
        return self._plan

    def since(self, query: str) -> int | None:
        """The first instant that a query answers wholly; None if it has seen all rows."""
        found = self._since[query]
        return None if found == ALWAYS else found

    def feed(
        self,
        batches: Mapping[str, pa.Table],
        watermarks: Mapping[str, int],
        joined: Mapping[str, pa.Table] | None = None,
    ) -> dict[str, pa.Table]:
        """Results that are due after some rows of each stream.

        Args:
            batches: Rows by stream, none of them late.
            watermarks: After this batch: no row of the stream that comes later lies below it. A
                stream that is not named keeps the one it has.
            joined: The same rows joined with tables, for each leaf that reads them so.
        """
        if self._is_closed:
            raise DataError("the stream is closed", hint="feed rows before close()")
        self._check(batches, watermarks)
        for stream, watermark in watermarks.items():
            self._watermarks[stream] = max(self._watermarks[stream], watermark)
        for stream, batch in batches.items():
            self._rows[stream] += batch.num_rows
            self._see(stream, batch)
        return self._run({**batches, **(joined or {})})

    def close(
        self,
        batches: Mapping[str, pa.Table] | None = None,
        joined: Mapping[str, pa.Table] | None = None,
    ) -> dict[str, pa.Table]:
        """All results that are left, with their whole lifetimes: no more rows will come.

        Args:
            batches: The last rows of each stream, if there are any.
            joined: The same rows joined with tables.
        """
        over = dict.fromkeys(self._watermarks, NEVER)
        found = self.feed(batches or {}, over, joined)
        self._is_closed = True
        return found

    def update(self, name: str, insert: pa.Table | None, delete: pa.Table | None) -> None:
        """Change a retroactive relation, from the instant after all that was seen on.

        Rows that were there before have the relation as it is then, too. What changes with it is
        shown with the next batch.
        """
        self._relations[name].update(insert, delete, self._next_instant())

    def _next_instant(self) -> int:
        """The first instant at which a relation may still change."""
        seen = [each + 1 for each in self._seen.values()]
        marks = [each for name, each in self._watermarks.items() if name not in self._relations]
        return max([BEGINNING, *seen, *marks])

    def _updates(self) -> dict[str, Changes]:
        """The updates of relations that time has passed."""
        now = self._next_instant()
        found = {}
        for name, relation in self._relations.items():
            if relation.at is not None and relation.at < now:
                found[name] = relation.release()
            self._watermarks[name] = max(self._watermarks[name], now)
        return found

    def _check(self, batches: Mapping[str, pa.Table], watermarks: Mapping[str, int]) -> None:
        for stream in (*batches, *watermarks):
            if stream not in self._plan.streams:
                known = ", ".join(self._plan.streams)
                raise DataError(f"there is no stream {stream!r}", hint=f"known streams: {known}")

    def see(self, seen: Mapping[str, int]) -> None:
        """Take note of the largest time of each stream, where this engine has only some rows."""
        for stream, ticks in seen.items():
            self._seen[stream] = max(self._seen.get(stream, ALWAYS), ticks)

    def _see(self, stream: str, batch: pa.Table) -> None:
        timeline = self._plan.streams[stream].timeline
        times = batch.column(timeline.column)
        if batch.num_rows > times.null_count:
            latest = pc.max(pc.drop_null(times) if times.null_count else times)
            ticks = timeline.to_ticks(pa.array([latest], times.type))[0].as_py()
            self.see({stream: ticks})

    def _run(self, batches: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
        changes: list[Changes] = []
        updates = self._updates()
        for store in self._graph.stores:
            first, second = (self._watermarks[stream] for stream in store.key.streams)
            store.threads = self.threads
            store.run(batches, (first, second))
        for step in self._graph.steps:
            if isinstance(step.operator, RelationLeaf):
                relation = self._relations[step.stream or ""]
                changes.append(step.operator.read(relation, updates.get(step.stream or "")))
                continue
            if step.stream is not None:
                changes.append(step.operator.read(batches.get(step.stream)))
                continue
            if isinstance(step.operator, WindowJoin):
                step.operator.threads = self.threads
            bounds = [self._watermark(streams) for streams in step.clocks]
            changes.append(step.operator.step([changes[each] for each in step.sources], bounds))
        shown = {}
        for final in self._plan.finals:
            found = changes[self._graph.roots[final.name]]
            shows = self._outputs[final.name]
            if isinstance(shows, WindowEnds):
                shows.horizon = self._horizon(final)
            shown[final.name] = shows.step(found, self._watermark(final.streams))
            self._results[final.name] += shown[final.name].num_rows
        for name, early in self._early.items():
            shown[name] = pa.concat_tables([early, shown[name]])
        self._failed.update(self._untold)
        self._early, self._untold = {}, {}
        return shown

    def _horizon(self, final: RowFinal) -> int:
        """The last time at which a row of a query may begin or end, by what has come."""
        return max(
            self._seen.get(leaf.stream, ALWAYS) + (leaf.range or 0) for leaf in leaves(final.root)
        )

    def _watermark(self, streams: Streams) -> int:
        return min(self._watermarks[stream] for stream in streams)

    def adopt(self, plan: RowPlan) -> None:
        """Go on with other queries; streams that stay have the times they had.

        Queries that stay are not changed by it. One that joins is complete from its first whole
        instant on: the largest time of all batches before, over the streams it reads, plus its
        longest RANGE; or earlier, if operators that run keep the rows of its windows.
        """
        before = self._plan.streams
        if any(
            before.get(name, each).timeline != each.timeline for name, each in plan.streams.items()
        ):
            raise DataError(
                "the streams of the queries have changed",
                hint="start a new stream with these queries",
            )
        # Who joins may take rows of a stream that nobody reads any more.
        self._watermarks = dict.fromkeys(plan.streams, ALWAYS) | self._watermarks
        self._rows = {name: self._rows.get(name, 0) for name in plan.streams}
        running = {final.name: final for final in self._plan.finals}
        fresh = [final for final in plan.finals if running.get(final.name) != final]
        names = {final.name for final in fresh}
        held = sources(self._graph, self._joined, self._watermark)
        whole = whole_joins(self._graph, self._since)
        past = History.of(plan, fresh, held, whole, self._seen, self._watermark)
        self._watermarks = {name: self._watermarks[name] for name in plan.streams}
        stays = self._newcomers & running.keys() - names
        self._newcomers = stays | past.newcomers
        known = {step.key: step for step in self._graph.steps if step.newcomer in {"", *stays}}
        begin = self._since | past.since
        stores = self._graph.stores
        graph = Graph(plan, known, begin, stores, None, self._newcomers, past.steps, past.homes)
        self._install(plan, graph, begin)
        for name, changes in past.changes.items():
            final = next(each for each in fresh if each.name == name)
            self._early[name] = self._outputs[name].step(changes, self._watermark(final.streams))
            self._results[name] += self._early[name].num_rows
        counted = self._total("errors") if past.changes else {}
        for name, failed in past.failed.items():
            # Operators have counted some of them; the next batch tells them all.
            self._failed[name], self._untold[name] = -counted[name], failed

    def _install(self, plan: RowPlan, graph: Graph, begin: Mapping[str, int]) -> None:
        """Run the operators of a plan; its queries are complete from some instants on."""
        finals = {final.name: final for final in plan.finals}
        before = {final.name: final for final in self._plan.finals}
        self._graph, self._plan = graph, plan
        self._relations = {
            name: self._relations[name] if name in self._relations else RelationRows(each.schema)
            for name, each in plan.streams.items()
            if each.retroactive
        }
        for name in [name for name, each in before.items() if finals.get(name) != each]:
            del self._outputs[name], self._since[name], self._results[name], self._joined[name]
            for past in (self._early, self._failed, self._untold):
                past.pop(name, None)
        for name in [name for name, each in finals.items() if before.get(name) != each]:
            root = graph.steps[graph.roots[name]]
            self._since[name], self._joined[name] = begin[name], dict(self._seen)
            self._outputs[name] = output(finals[name], root, begin[name])
            self._results[name] = 0

    @property
    def statistics(self) -> RowStatistics:
        """What was done, and what is kept, which is counted for it."""
        return RowStatistics(
            dict(self._rows), dict(self._results), self.errors, self._total("kept")
        )

    @property
    def errors(self) -> dict[str, int]:
        """Expressions that failed, by query."""
        return {name: found + self._failed[name] for name, found in self._total("errors").items()}

    def _total(self, count: str) -> dict[str, int]:
        """A count of the operators below each query's root, added up."""
        return {
            name: sum(
                getattr(self._graph.steps[each].operator, count, 0)
                for each in self._graph.below(root)
            )
            for name, root in self._graph.roots.items()
        }

    def snapshot(
        self, outside: Callable[[Segment], str | None] | None = None, *, is_dense: bool = False
    ) -> bytes:
        """All that is kept, for `restore` with the same plan.

        Args:
            outside: Names segments of rows that are written elsewhere, by `segment_bytes`.
            is_dense: Whether it is compressed.
        """
        state = {
            "queries": [final.name for final in self._plan.finals],
            "watermarks": self._watermarks,
            "seen": self._seen,
            "rows": self._rows,
            "results": self._results,
            "since": self._since,
            "joined": self._joined,
            "newcomers": sorted(self._newcomers),
            "early": {
                name: [single(each) for each in table.columns]
                for name, table in self._early.items()
            },
            "untold": self._untold,
            "closed": self._is_closed,
            "relations": {name: kept(each) for name, each in self._relations.items()},
            "steps": [kept(step.operator) for step in self._graph.steps],
            "assigned": self._graph.assigned,
            "stores": [kept(store) for store in self._graph.stores],
            "outputs": {name: kept(each) for name, each in self._outputs.items()},
        }
        return snapshot_bytes(state, outside, is_dense=is_dense)

    @classmethod
    def restore(
        cls,
        plan: RowPlan,
        data: bytes | memoryview,
        inside: Callable[[str], Segment] | None = None,
    ) -> RowEngine:
        """An engine that goes on where a snapshot was taken.

        Args:
            plan: The plan that it was taken of.
            data: The snapshot.
            inside: Brings the segments that it has only the names of.
        """
        state = state_of(data, inside)
        newcomers = state.get("newcomers", ())
        engine = cls(plan, assigned=state["assigned"], since=state["since"], newcomers=newcomers)
        names = [final.name for final in plan.finals]
        if state["queries"] != names or len(state["steps"]) != len(engine._graph.steps):
            raise DataError(
                "the snapshot was taken with other queries",
                hint="resume with the queries it was taken with",
            )
        engine._watermarks, engine._seen = state["watermarks"], state["seen"]
        engine._rows, engine._results = state["rows"], state["results"]
        engine._is_closed = state["closed"]
        # Who does not say when its queries joined might have lacked rows up to now.
        engine._joined = state.get("joined", dict.fromkeys(names, state["seen"]))
        schemas = {final.name: final.schema for final in plan.finals}
        for name, columns in state.get("early", {}).items():
            engine._early[name] = pa.Table.from_arrays(list(columns), schema=schemas[name])
        engine._untold = state.get("untold", {})
        for name, held in state.get("relations", {}).items():
            load(engine._relations[name], held)
        for step, held in zip(engine._graph.steps, state["steps"], strict=True):
            load(step.operator, held)
        for store, held in zip(engine._graph.stores, state["stores"], strict=True):
            load(store, held)
        for name, held in state["outputs"].items():
            load(engine._outputs[name], held)
        return engine


def output(final: RowFinal, root: Step, begin: int) -> Output:
    """What shows the rows of a query."""
    if final.show != "rows":
        return Differences(final, root.lifetime, begin, strict=root.strict)
    if final.slide is not None:
        return WindowEnds(final, root.lifetime, begin, strict=root.strict)
    if final.output == "changes":
        return ChangeLog(final, root.lifetime, begin)
    if root.strict:
        if final.output == "append":
            raise DataError(
                f"rows of query {final.name} may end early, and cannot be appended",
                hint="use output 'final' or 'changes'",
            )
        return Finals(final, root.lifetime, begin, strict=True)
    if final.output == "final" and is_mixed(final.root):
        return Endings(final, root.lifetime, begin)
    return Arrivals(final, begin)
