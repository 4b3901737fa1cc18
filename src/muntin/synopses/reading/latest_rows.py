"""Questions about the latest rows: aggregates over those that a keep of rows holds."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot.tokenizer_core import TokenType

from muntin.engine.rows.stage_a import StageA
from muntin.errors import MuntinError, QueryError, QuestionError
from muntin.queries import Keep, Question
from muntin.queries.asking.questions import whole_number
from muntin.queries.asking.words import Word, shape_of
from muntin.queries.sql.normalize import dotted, quote
from muntin.synopses.answer import AsOf, Covers, Facts
from muntin.synopses.fit import Fit, fit, problems_of
from muntin.synopses.keeps.kept import Kept, plan_keep
from muntin.synopses.keeps.latest_rows import TICK, KeptRows, RowVersion
from muntin.synopses.keeps.replica import Moment, Replica
from muntin.synopses.reading import Budget, Reading, Window
from muntin.synopses.shown_times import shown_time
from muntin.windows import Window as WindowSpec

# No name of a column: how far a row is behind the first, which puts them all into one slice.
_BEHIND = "$behind"
_SLICE = (1 << 62) - 1
_MOST = 256


@dataclass(frozen=True)
class _Planned:
    """A question as it is computed from rows: its partials, and how they answer it."""

    rows: KeptRows
    kept: Kept
    fit: Fit
    stage: StageA


class RowReader:
    """Answers questions over ``[ROWS n]``; what they compute is planned once per question."""

    def __init__(self) -> None:
        self._planned: dict[Hashable, _Planned] = {}
        self._lock = threading.Lock()

    def answer(
        self,
        question: Question,
        words: Sequence[Word],
        held: Sequence[RowVersion],
        budget: Budget,
        limit: int | None,
        read: Callable[[], Question],
    ) -> Facts:
        """All that an answer has but how long it took.

        ``question`` may have other constants than ``words``; ``read`` gives the one with theirs.

        Raises:
            QuestionError: If no keep of rows holds what is asked.
        """
        rows = _count(question, words, read)
        version, planned = _chosen(
            _enough(question, rows, held), lambda kept: self._plan(question, words, kept, read)
        )
        partition = [_column(version.kept, name) for name in question.partition]
        table = version.latest(rows, partition)
        _check_complete(version, table, partition, rows)
        budget.check()
        ticks = table[TICK].to_numpy()
        # In order of time, as the aggregates are that go by it.
        given = table.drop_columns([TICK]).append_column(
            _BEHIND, pa.array(ticks - ticks.min() if ticks.size else ticks)
        )
        replica = Replica(planned.kept)
        replica.apply(planned.stage(given).partials[:1], Moment(1, 0, 0), table.num_rows)
        whole = Window((0, 1), (0, 1))
        found = Reading(replica.version, planned.fit, [], whole, budget).read(limit)
        timeline, moment = version.kept.timeline, version.moment
        covers = None
        if table.num_rows:
            first, last = int(ticks.min()), int(ticks.max())
            covers = Covers(
                shown_time(timeline, first), shown_time(timeline, last + timeline.resolution)
            )
        return Facts(
            found.table,
            True,
            found.rows,
            covers,
            AsOf(shown_time(timeline, moment.latest), shown_time(timeline, moment.watermark)),
            moment.batch,
            f"keep {version.kept.name} (the latest {table.num_rows:,} rows)",
        )

    def _plan(
        self,
        question: Question,
        words: Sequence[Word],
        kept: KeptRows,
        read: Callable[[], Question],
    ) -> _Planned:
        constants = tuple(
            word.text
            for place, word in enumerate(words)
            if word.token_type in (TokenType.STRING, TokenType.NUMBER)
            and place not in (question.free.range, question.free.limit)
        )
        key = (kept.name, shape_of(words), constants)
        found = self._planned.get(key)
        # A keep that was created anew may have other columns.
        if found is None or found.rows is not kept:
            found = _planned(read(), kept)
            with self._lock:
                if len(self._planned) >= _MOST:
                    self._planned.clear()
                self._planned[key] = found
        return found


def _chosen(
    versions: Sequence[RowVersion], plan: Callable[[KeptRows], _Planned]
) -> tuple[RowVersion, _Planned]:
    """The first keep that has the columns that a question reads, and how it answers."""
    refused: list[MuntinError] = []
    for version in versions:
        try:
            return version, plan(version.kept)
        except MuntinError as error:
            refused.append(error)
    raise refused[-1]


def _planned(question: Question, kept: KeptRows) -> _Planned:
    """All rows are one slice, of which the question's own aggregates are kept."""
    grid = WindowSpec(_SLICE, _SLICE)
    schema = kept.schema.append(pa.field(_BEHIND, pa.int64()))
    asked = replace(question.query, window=grid, time=None)
    try:
        made = plan_keep(Keep(replace(asked, having=None)), schema, _BEHIND, zone=kept.zone)
        fitted = fit(replace(question, query=asked), made, {})
    except QueryError as error:
        raise problems_of(error) from None
    return _Planned(kept, made, fitted, StageA(made.plan, {}))


def _count(question: Question, words: Sequence[Word], read: Callable[[], Question]) -> int:
    place = question.free.range
    found = None if place is None else whole_number(words[place].text)
    # Whoever reads the text says what is wrong with other numbers.
    return found or read().query.window.range


def _enough(question: Question, rows: int, held: Sequence[RowVersion]) -> list[RowVersion]:
    """The keeps that have as many rows, those with the fewest first."""
    enough = [
        each
        for each in held
        if each.kept.keep.rows >= rows
        and {name.lower() for name in question.partition}
        <= {name.lower() for name in each.kept.keep.partition}
    ]
    if enough:
        return sorted(enough, key=lambda each: each.kept.keep.rows)
    query = question.query
    by = f"PARTITION BY {', '.join(map(quote, question.partition))} " if question.partition else ""
    again = "OR REPLACE " if any(each.kept.name.lower() == "last" for each in held) else ""
    would = f"CREATE {again}KEEP last AS SELECT * FROM {dotted(query.source)} [{by}ROWS {rows}]"
    named = "; ".join(str(each.kept.keep) for each in held)
    reason = f"what is kept of its rows is {named}" if held else "none of its rows are kept"
    raise QuestionError(
        f"no keep of {query.source} answers [{by}ROWS {rows}]: {reason}",
        hint=f"this would, from {rows:,} rows on: {would}",
    )


def _column(kept: KeptRows, name: str) -> str:
    return next(each for each in kept.keep.partition if each.lower() == name.lower())


def _check_complete(
    version: RowVersion, table: pa.Table, partition: Sequence[str], rows: int
) -> None:
    """Refuse where rows from before the keep would be among those asked for."""
    if version.since is None:
        return
    known = table.filter(pc.greater(table[TICK], version.since))
    enough = known.num_rows >= rows
    if partition:
        counts = known.group_by(list(partition)).aggregate([([], "count_all")])["count_all"]
        enough = bool(len(counts)) and pc.min(counts).as_py() >= rows
        enough = enough and known.num_rows == table.num_rows
    if not enough:
        raise QuestionError(
            f"keep {version.kept.name} began while the stream ran, and has "
            f"{known.num_rows:,} rows since",
            hint="ask for fewer rows, or later",
        )
