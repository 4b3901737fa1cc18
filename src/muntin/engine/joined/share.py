"""One bucket's share of aggregates over joins: slices of its keys, and answers that wait."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from muntin.engine.answers.front import Answered
from muntin.engine.joined.answers import JoinAnswers
from muntin.engine.rows.stage_a import StageA
from muntin.engine.state import State
from muntin.plan.joined import JoinFinal, by_owner
from muntin.plan.nodes import SharedPlan


@dataclass(frozen=True)
class Times:
    """The watermarks of streams, and the largest time of each, by name; none where it has none."""

    watermarks: Mapping[str, int] = field(default_factory=dict)
    seen: Mapping[str, int] = field(default_factory=dict)


@dataclass
class Shared:
    """Results by query, and shares of those whose groups other buckets have rows of as well.

    ``gaps`` are, by query with a share anywhere, the first windows of gaps before these.
    """

    tables: dict[str, pa.Table] = field(default_factory=dict)
    shares: dict[str, pa.Table] = field(default_factory=dict)
    gaps: dict[str, int] = field(default_factory=dict)


class JoinShare:
    """Runs the sides of joins over the rows of some keys, and combines what they answer.

    Each feed, the rows of a stream spread by a key, has a plan and a state of its own. The rows
    that a bucket holds are not all of a stream, so it is told the times of the whole.
    """

    def __init__(self) -> None:
        self._plans: dict[str, SharedPlan] = {}
        self._stages: dict[str, StageA] = {}
        self._states: dict[str, State] = {}
        self._answers = JoinAnswers()
        self._failed: Counter[str] = Counter()

    @property
    def is_empty(self) -> bool:
        """Whether there are no queries."""
        return not self._answers.finals

    @property
    def errors(self) -> Counter[str]:
        """Values that failed, by query."""
        return by_owner(self._failed + self._answers.errors)

    def adopt(
        self,
        plans: Mapping[str, SharedPlan],
        finals: tuple[JoinFinal, ...],
        spanning: frozenset[str],
        times: Times,
    ) -> None:
        """Go on with other queries.

        Args:
            plans: The plan of the sides over each feed, made for the state that it meets.
            finals: The queries.
            spanning: Those of which other buckets have shares as well.
            times: The times of the feeds so far.
        """
        states: dict[str, State] = {}
        for name, plan in plans.items():
            state = self._states.get(name)
            if state is None:
                state = State(replace(plan, finals=(), partials=()))
                state.seen = times.seen.get(name)
                state.watermark = times.watermarks.get(name)
            if state.plan != plan:
                state.adopt(plan)
            states[name] = state
        following: dict[str, int] = {}
        for state in states.values():
            following |= state.next_windows()
        self._install(dict(plans), states)
        self._answers.adopt(finals, following, spanning)

    def _install(self, plans: dict[str, SharedPlan], states: dict[str, State]) -> None:
        self._stages = {
            name: self._stages[name] if self._plans.get(name) == plan else StageA(plan, {})
            for name, plan in plans.items()
        }
        self._plans, self._states = plans, states

    def feed(
        self,
        rows: Mapping[str, pa.Table],
        feeds: Times,
        watermarks: Mapping[str, int],
        found: dict[str, pa.Table],
    ) -> Shared:
        """Take in rows, and answer what is due.

        Args:
            rows: Rows by feed, none of them late.
            feeds: The times of the feeds after it.
            watermarks: Those of the streams.
            found: What row queries gave, rows of joins that are aggregated among them.
        """
        gaps = self._answers.gaps
        for name, state in self._states.items():
            given = rows.get(name)
            if given is not None and given.num_rows:
                output = self._stages[name](given)
                self._failed.update(output.counts.errors)
                state.take(output.partials, None)
            state.seen = feeds.seen.get(name, state.seen)
            if name in feeds.watermarks:
                found |= self._taken(state.advance(feeds.watermarks[name]))
        shown = self._answers.take(found) | self._answers.due(watermarks)
        return self._apart(shown, gaps)

    def close(self, found: dict[str, pa.Table]) -> Shared:
        """All that is left; no more rows will come."""
        gaps = self._answers.gaps
        for state in self._states.values():
            found |= self._taken(state.close())
        shown = self._answers.take(found) | self._answers.close()
        return self._apart(shown, gaps)

    def _taken(self, answered: Answered) -> dict[str, pa.Table]:
        self._failed.update(answered.errors)
        return answered.tables

    def _apart(self, shown: dict[str, pa.Table], gaps: dict[str, int]) -> Shared:
        spanning = self._answers.spanning
        return Shared(
            {name: table for name, table in shown.items() if name not in spanning},
            {name: each for name, each in shown.items() if name in spanning and each.num_rows},
            {name: gap for name, gap in gaps.items() if name in spanning},
        )

    def snapshot(self) -> bytes:
        """All that is kept, for `restore` with the same queries."""
        states = {name: state.snapshot() for name, state in self._states.items()}
        return pickle.dumps((states, self._answers.snapshot(), self._failed), protocol=5)

    @classmethod
    def restore(
        cls,
        plans: Mapping[str, SharedPlan],
        finals: tuple[JoinFinal, ...],
        spanning: frozenset[str],
        data: bytes | memoryview,
    ) -> JoinShare:
        """A share that goes on where a snapshot was taken."""
        states, answers, failed = pickle.loads(data)
        share = cls()
        share._install(
            dict(plans),
            {name: State.restore(plan, states[name])[0] for name, plan in plans.items()},
        )
        following: dict[str, int] = {}
        for state in share._states.values():
            following |= state.next_windows()
        share._answers.adopt(finals, following, spanning)
        share._answers.resume(answers)
        share._failed = failed
        return share
