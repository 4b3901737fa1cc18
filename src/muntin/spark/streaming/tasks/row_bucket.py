"""A bucket that no stream owns: rows of several streams, and the queries that bring them together.

The state is a *base*, what the operators keep at the end of a batch, *segments* of joined rows that
it names, and the *news* since: the rows that each batch brought, with the watermarks it reached. A
segment is written once, when a base first names it, and left out when all its rows have ended. A
worker that does not have the state in its memory reads the base, maps the segments, of which it
reads what it looks at, and feeds the operators the news, whose results were given before. Where a
base takes few times the bytes of the news, each batch writes one instead: nothing is done again.
"""

from __future__ import annotations

import hashlib
import pickle
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pyarrow as pa

from muntin.engine.joined import JoinShare, Shared, Times
from muntin.errors import DataError
from muntin.operators import RowEngine, segment_bytes, segment_of
from muntin.operators.feeds import gathered_feeds
from muntin.operators.state.segments import Segment
from muntin.operators.state.snapshot import OtherFormatError
from muntin.plan.joined import by_owner
from muntin.plan.operators import RowPlan
from muntin.plan.routes import RoutedPlan
from muntin.spark.streaming.buckets import Buckets
from muntin.spark.streaming.problems import RESTORE, CheckpointError
from muntin.spark.streaming.reports import packed_share
from muntin.spark.streaming.tasks.carrier import StateFolder, StateWriter, Whose
from muntin.spark.streaming.tasks.head import Head, Piece
from muntin.spark.streaming.tasks.job import Job
from muntin.spark.streaming.tasks.memory import KeptState, worker_states
from muntin.spark.streaming.tasks.stage_a import Parcel

# A segment of fewer rows is part of the base.
_ROWS_APART = 512
# A base is small where rows lie in segments: it is written after so few batches, as who has no
# operators at hand feeds them all that came since.
_FEWEST = 4
# So many batches of news a worker reads, however small they are, unless a base outweighs them.
_MOST_NEWS = 32
# Slices of the sides of joins are written with every base: not more often than so many times
# what came in, unless the news are that many times too many.
_FEW_WRITES = 4
# A base is light that takes no more than so many times the bytes of the news it stands for. Rows in
# segments, which are written sooner or later, take about four times what they take on their way.
_LIGHT = 6
_OTHER_VERSION = (
    "go on with the version of Muntin that wrote it, or start with an empty checkpoint and another "
    "folder for results"
)


@dataclass
class RowAnswers:
    """The results of a batch by query, and how often values failed.

    ``shares`` and ``gaps`` are of aggregates over joins whose groups other buckets have as well.
    """

    tables: dict[str, pa.Table] = field(default_factory=dict)
    errors: Counter[str] = field(default_factory=Counter)
    shares: dict[str, bytes] = field(default_factory=dict)
    gaps: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _Times:
    """The watermark and the largest time of each stream, by its number; none where it has none."""

    watermarks: dict[int, int]
    seen: dict[int, int]

    def of_feeds(self, plan: RoutedPlan) -> Times:
        """The same by the names that the plan has for streams spread by a key."""
        numbers = {name: number for number, name in enumerate(plan.asked.streams)}
        marks, seen = (
            {
                feed.clock: times[numbers[feed.stream]]
                for feed in plan.feeds.values()
                if numbers[feed.stream] in times
            }
            for times in (self.watermarks, self.seen)
        )
        return Times(marks, seen)

    def of_streams(self, plan: RoutedPlan) -> dict[str, int]:
        """The watermarks by the names of the streams."""
        numbered = enumerate(plan.asked.streams)
        return {name: self.watermarks[each] for each, name in numbered if each in self.watermarks}


@dataclass(frozen=True)
class _News:
    """The rows that a batch brought, by feed, and the times it reached."""

    batch: int
    times: _Times
    packets: list[dict[str, bytes]]

    @property
    def size(self) -> int:
        """The bytes of its rows."""
        return sum(len(data) for packet in self.packets for data in packet.values())


@dataclass
class _Operators:
    """The operators of a bucket, and the pieces of those segments that files have.

    ``share`` are the aggregates over joins.
    """

    engine: RowEngine
    share: JoinShare = field(default_factory=JoinShare)
    segments: dict[int, tuple[Segment, Piece]] = field(default_factory=dict)

    @property
    def errors(self) -> Counter[str]:
        """Values that failed, by the query that a user wrote."""
        return by_owner(self.engine.errors) + self.share.errors

    def feed(
        self, plan: RoutedPlan, times: _Times, packets: Sequence[Mapping[str, bytes]]
    ) -> Shared:
        """Take in the rows of a batch; what it makes due."""
        feeds = times.of_feeds(plan)
        self.engine.see(_known(feeds.seen, plan))
        given = gathered_feeds(packets)
        plain = {name: rows for name, rows in given.items() if name in plan.plan.streams}
        joined = {
            name: rows for name, rows in given.items() if name not in plain and name in plan.tabled
        }
        found = self.engine.feed(plain, _known(feeds.watermarks, plan), joined)
        if self.share.is_empty:
            return Shared(found)
        return self.share.feed(given, feeds, times.of_streams(plan), found)

    def close(self) -> Shared:
        """All that is left."""
        found = self.engine.close()
        return Shared(found) if self.share.is_empty else self.share.close(found)

    def adopt(self, plan: RoutedPlan, before: Times) -> None:
        """Go on with the queries of another plan."""
        self.engine.see(_known(before.seen, plan))
        self.engine.adopt(plan.plan)
        self.share.adopt(plan.sides, plan.asked.joined, plan.spanning, before)


class RowBucket:
    """The state of a bucket with rows of several streams, from where Spark keeps its head.

    Args:
        job: The batch.
        buckets: How state is spread.
        bucket: Its number.
        held: What Spark keeps of it: the columns of `bucket.SCHEMA`; None where there is nothing.
    """

    def __init__(self, job: Job, buckets: Buckets, bucket: int, held: Any) -> None:
        assert job.record.row_plan is not None
        self._job, self._bucket, self._partition = job, bucket, bucket % buckets.partitions
        self._plan: str = job.record.row_plan
        self._folder = StateFolder(job.blocks, job.run)
        self._whose = Whose(bucket, job.record.batch)
        self._operators: _Operators | None = None
        self._news: _News | None = None
        if held is None:
            self.found, self._written, self.head = "", "", Head(self._plan)
        else:
            self.found, self._written = str(held[0]), str(held[1])
            self.head = self._read_head(str(held[2]), bytes(held[3]))
        self.token = self.found
        self._is_joined = held is None or self.head.plan != self._plan
        self._is_changed = self._is_joined

    def _read_head(self, plan: str, data: bytes) -> Head:
        try:
            head = Head.of_bytes(data)
        except ValueError as error:
            raise CheckpointError(f"{self._whose}, is damaged: {error}", hint=RESTORE) from error
        before = self._job.record.row_before
        if plan != before:
            raise CheckpointError(
                f"the state of bucket {self._bucket} is of plan {plan}, and batch "
                f"{self._job.record.batch} goes on from plan {before}",
                hint=RESTORE,
            )
        return head

    def answer(self, parcels: Sequence[Parcel], latest: Mapping[int, int]) -> RowAnswers:
        """Take in the rows of a batch, and the largest time of each stream that has rows."""
        times = self._reached(latest)
        if not (parcels or self._is_changed or self.head.holds):
            return RowAnswers()
        self._is_changed = True
        # Whichever task was heard first, attempts at a batch take rows in the same order.
        ordered = sorted(parcels, key=lambda each: (each.stream, each.task))
        packets = [each.packets for each in ordered]
        # Without rows too: who reads the news does what was done, step by step, so that attempts
        # at a batch keep the same segments.
        self._news = _News(self._job.record.batch, times, packets)
        operators = self._current()
        before = operators.errors
        shared = operators.feed(self._routed, times, packets)
        self.head.state = {"watermarks": _listed(times.watermarks), "seen": _listed(times.seen)}
        return _answers(shared, operators.errors - before)

    def close(self) -> RowAnswers:
        """All results that are left: no more rows will come."""
        operators = self._current()
        before = operators.errors
        return _answers(operators.close(), operators.errors - before)

    @property
    def since(self) -> dict[str, int | None]:
        """By query, the first instant that it answers wholly, where queries have joined now."""
        if not self._is_joined or self._operators is None:
            return {}
        engine = self._operators.engine
        return {final.name: engine.since(final.name) for final in self._routed.finals}

    @property
    def _routed(self) -> RoutedPlan:
        return self._job.row_plan(self._plan)

    def _reached(self, latest: Mapping[int, int]) -> _Times:
        """Where the streams are after the batch."""
        marks, seen = {}, {}
        for number, stream in enumerate(self._job.record.streams):
            own = latest.get(number)
            mark = stream.reached(own)
            if mark is not None:
                marks[number] = mark
            known = [each for each in (own, stream.seen) if each is not None]
            if known:
                seen[number] = max(known)
        return _Times(marks, seen)

    def _before(self) -> _Times:
        """Where the streams were before the batch."""
        streams = list(enumerate(self._job.record.streams))
        return _Times(
            {number: each.watermark for number, each in streams if each.watermark is not None},
            {number: each.seen for number, each in streams if each.seen is not None},
        )

    def _current(self) -> _Operators:
        """The operators as the batch begins, with the queries of the batch."""
        operators = self._operators = self._at_hand() or self._restored()
        if self._is_joined:
            operators.adopt(self._routed, self._before().of_feeds(self._routed))
        return operators

    def _at_hand(self) -> _Operators | None:
        """The operators that this worker has in its memory, or those of a little before."""
        kept = worker_states.take((self._job.run, self._bucket))
        if kept is None or kept.plan != self.head.plan or not self._job.cache:
            return None
        operators: _Operators = kept.state
        if kept.written != self._written:
            age = self.head.age(kept.written)
            base = self.head.base
            # One from before the base does not know which segments are written.
            if age is None or (base is not None and age < base.last):
                return None
            self._catch_up(operators, age)
        return operators

    def _restored(self) -> _Operators:
        """The operators as the pieces have them."""
        head = self.head
        if head.base is None:
            return _Operators(RowEngine(RowPlan({}, ())))
        pieces = {f"{each.batch}:{each.name}": each for log in head.stretches for each in log}
        segments: dict[int, tuple[Segment, Piece]] = {}

        def inside(name: str) -> Segment:
            segment = segment_of(self._get(pieces[name], private=True))
            segments[id(segment)] = segment, pieces[name]
            return segment

        plan = self._job.row_plan(head.plan)
        try:
            engine = RowEngine.restore(plan.plan, self._get(head.base), inside)
            operators = _Operators(engine, self._restored_share(plan), segments)
        except OtherFormatError as error:
            raise CheckpointError(
                f"{self._whose}, is of another version: {error.message}", hint=_OTHER_VERSION
            ) from error
        except DataError as error:
            raise CheckpointError(
                f"{self._whose}, is damaged: {error.message}", hint=RESTORE
            ) from error
        self._catch_up(operators, head.base.last)
        return operators

    def _restored_share(self, plan: RoutedPlan) -> JoinShare:
        """The aggregates over joins; their piece stands behind the segments."""
        if not plan.asked.joined:
            return JoinShare()
        (piece,) = self.head.stretches[1]
        queries = plan.asked.joined, plan.spanning
        return JoinShare.restore(plan.sides, *queries, self._get(piece))

    def _catch_up(self, operators: _Operators, since: int) -> None:
        """Feed the news of batches after one; what they give was given then."""
        plan = self._job.row_plan(self.head.plan)
        for piece in self.head.since(since):
            news: _News = pickle.loads(self._get(piece))
            operators.feed(plan, news.times, news.packets)

    def _get(self, piece: Piece, *, private: bool = False) -> memoryview:
        place = piece.batch, self._partition, piece.name
        return self._folder.get(*place, self._whose, private=private)

    def store(self, writer: StateWriter, results: Mapping[str, int]) -> None:
        """Write what is new, and keep the operators at hand; the head is what Spark is to keep."""
        operators, head = self._operators, self.head
        if not self._is_changed or operators is None:
            return
        self._written = uuid4().hex
        if self._is_joined or head.is_light or self._wants_base():
            self._rebase(writer, operators)
        else:
            data = pickle.dumps(self._news, protocol=5)
            head.news.append(self._put(writer, "news", data))
        head.holds = True
        self.token = self._token(results)
        head.wrote(self._job.record.batch, self._written)
        if self._job.cache:
            kept = KeptState(self._written, head.plan, operators, head.size)
            worker_states.put((self._job.run, self._bucket), kept, self._job.cache << 20)

    def _rebase(self, writer: StateWriter, operators: _Operators) -> None:
        """Write a base, which the next batch does too if this one is light.

        That follows from what this attempt leaves, so that all attempts at the next batch agree.
        """
        head, batch = self.head, self._job.record.batch
        brought = sum(piece.size for piece in head.unmerged)
        brought += 0 if self._news is None else self._news.size
        head.plan = self._plan
        base = self._put(writer, "base", self._snapshot(writer, operators))
        # No operators from before it are caught up: they do not know which segments are written.
        head.rebase(base, keep=False)
        written = sum(piece.size for piece in head.pieces() if piece.batch == batch)
        head.is_light = written <= _LIGHT * brought

    def _wants_base(self) -> bool:
        """Whether the news outweigh what is written with a base, or are too many to read."""
        head = self.head
        apart = sum(piece.size for log in head.stretches[1:] for piece in log)
        news = head.unmerged
        brought = sum(piece.size for piece in news)
        if len(news) >= _MOST_NEWS:
            base = 0 if head.base is None else head.base.size
            is_light = brought >= base and _FEW_WRITES * brought >= apart
            return is_light or len(news) >= _FEW_WRITES * _MOST_NEWS
        return head.wants_base(_FEWEST) and brought >= apart

    def row(self) -> tuple[str, str, str, bytes] | None:
        """What Spark is to keep; None where that is as it was."""
        if not self._is_changed:
            return None
        return self.token, self._written, self.head.plan, self.head.to_bytes()

    def _snapshot(self, writer: StateWriter, operators: _Operators) -> bytes:
        """What the operators keep; segments that no file has yet are written first."""
        live: dict[int, tuple[Segment, Piece]] = {}

        def outside(segment: Segment) -> str | None:
            if len(segment) < _ROWS_APART:
                return None
            known = operators.segments.get(id(segment)) or live.get(id(segment))
            if known is None:
                piece = self._put(writer, f"rows{len(live)}", segment_bytes(segment))
                known = segment, piece
            live[id(segment)] = known
            return f"{known[1].batch}:{known[1].name}"

        data = operators.engine.snapshot(outside, is_dense=True)
        operators.segments = live
        self.head.stretches = [[piece for _, piece in live.values()]]
        if not operators.share.is_empty:
            share = self._put(writer, "sides", operators.share.snapshot())
            self.head.stretches.append([share])
        return data

    def _put(self, writer: StateWriter, kind: str, data: bytes) -> Piece:
        batch, name = self._job.record.batch, f"{self._bucket}/{kind}.0"
        return Piece(name, batch, batch, batch, writer.put(name, data))

    def _token(self, results: Mapping[str, int]) -> str:
        """What the state is known by; see `Bucket`."""
        times = self.head.state.get("watermarks"), self.head.state.get("seen")
        parts = (
            *(self._job.run, self._job.record.batch, self._bucket, self._plan),
            *times,
            sorted(results.items()),
        )
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _answers(shared: Shared, errors: Counter[str]) -> RowAnswers:
    shares = {name: packed_share(table) for name, table in shared.shares.items()}
    return RowAnswers(shared.tables, errors, shares, shared.gaps)


def _known(times: Mapping[str, int], plan: RoutedPlan) -> dict[str, int]:
    """Times of the feeds that row queries read."""
    return {name: time for name, time in times.items() if name in plan.plan.streams}


def _listed(times: Mapping[int, int]) -> list[tuple[int, int]]:
    return sorted(times.items())
