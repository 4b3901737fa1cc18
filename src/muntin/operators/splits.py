"""Hot keys that are split over several buckets: the rows of one stream spread, the others' copied.

A row that is spread meets all rows of the others in its bucket, wherever that is, so each result
is found once. A key turns hot, and cold, while rows of it are kept, which stay where they are:

* ``copying``: rows of the smaller sides are copied from here on, those of the largest still go to
  the key's own bucket, as long as rows that were not copied may meet them.
* ``split``: rows of the largest side are spread.
* ``ending``: they go to the key's own bucket again, and those of the others are copied as long as
  they may meet rows that were spread.
* ``clearing``: all rows go to the key's own bucket, and copies are waited for, as rows of another
  side would meet them once these are copied.

Rows are told apart by the hash of their key. Keys of one hash are split together, on all sides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from muntin.operators.hot_keys import Key, KeyCounts
from muntin.plan.routes import RoutedPlan, SplitGroup

Phase = Literal["copying", "split", "ending", "clearing"]
# A key is hot if it has half of what each partition would have of all rows, and stays so down to
# a quarter.
_HOT, _COLD = 0.5, 0.25
# Keys of a group that are looked at, and rows that a sample must have to say anything.
_MOST = 16
_FEWEST = 256


@dataclass(frozen=True)
class SplitKey:
    """A key that is split, as the record of a batch has it.

    Attributes:
        group: The name of the group of streams that meet by it.
        key: The key as text.
        hash: Its hash.
        spread: The place in the group of the stream whose rows are spread.
        phase: Where it is between being whole and being split.
        until: The watermark that phases but ``split`` wait for; None where any will do.
    """

    group: str
    key: str
    hash: int
    spread: int
    phase: Phase
    until: int | None = None


class KeySplit(NamedTuple):
    """A key that is split, as text, the stream whose rows are spread, and how far that is."""

    key: str
    spread: str
    phase: Phase


class Reached(NamedTuple):
    """Where a stream is before a batch: its largest time, and its watermark; None before rows."""

    seen: int | None
    watermark: int | None


@dataclass(frozen=True)
class Lanes:
    """How the rows of one feed leave the bucket of their key.

    Attributes:
        count: Over how many buckets a key is split.
        copied: Hashes of keys whose rows go to all of these.
        spread: Hashes of keys of which each row goes to one of these.
    """

    count: int = 1
    copied: tuple[int, ...] = ()
    spread: tuple[int, ...] = ()


def lanes_of(
    splits: Sequence[SplitKey], groups: Sequence[SplitGroup], clock: str, count: int
) -> Lanes:
    """How the rows of a feed leave the buckets of their keys, with ``count`` buckets for each."""
    copied, spread = [], []
    for group in groups:
        if clock not in group.clocks:
            continue
        place = group.clocks.index(clock)
        for each in splits:
            if each.group != group.name:
                continue
            if each.spread != place and each.phase != "clearing":
                copied.append(each.hash)
            elif each.spread == place and each.phase == "split":
                spread.append(each.hash)
    return Lanes(count, tuple(copied), tuple(spread))


@dataclass(frozen=True)
class Heat:
    """How hot the keys of a group are: of each key, its share of all rows by stream.

    It is not known before enough rows were looked at.
    """

    shares: Mapping[Key, tuple[float, ...]]
    is_known: bool = True

    @classmethod
    def of(cls, counts: Sequence[KeyCounts | None], rows: Sequence[int]) -> Heat:
        """By the keys in samples of each stream, and how many rows each has."""
        total = max(sum(rows), 1)
        found: dict[Key, list[float]] = {}
        for place, (each, own) in enumerate(zip(counts, rows, strict=True)):
            if each is None or each.rows < _FEWEST:
                continue
            for key, share in each.shares(_MOST):
                found.setdefault(key, [0.0] * len(rows))[place] = share * own / total
        known = [each for each in counts if each is not None and each.rows >= _FEWEST]
        return cls({key: tuple(each) for key, each in found.items()}, bool(known))

    def of_hash(self, hashed: int) -> tuple[float, ...]:
        """The shares of a key, by its hash; none where it is not among the hottest."""
        return next((each for key, each in self.shares.items() if key.hash == hashed), ())


def heats_of(
    plan: RoutedPlan, counts: Mapping[str, KeyCounts], rows: Mapping[str, int]
) -> dict[str, Heat]:
    """How hot the keys of each group of a plan are.

    Args:
        plan: The plan.
        counts: The keys in samples of its feeds, by name.
        rows: How many rows each stream has.
    """
    names = {feed.clock: name for name, feed in plan.feeds.items()}
    return {
        group.name: Heat.of(
            [counts.get(names[clock]) for clock in group.clocks],
            [rows.get(stream, 0) for stream in group.streams],
        )
        for group in plan.groups
    }


def decided(
    groups: Sequence[SplitGroup],
    before: Sequence[SplitKey],
    times: Mapping[str, Reached],
    heats: Mapping[str, Heat],
    partitions: int,
) -> tuple[SplitKey, ...]:
    """The keys that the next batch splits.

    Args:
        groups: The groups of its plan.
        before: The keys that the batch before has split.
        times: Where each stream is.
        heats: How hot the keys of each group are.
        partitions: Over how many buckets keys are split.
    """
    found: list[SplitKey] = []
    for group in groups:
        heat = heats[group.name]
        own = [each for each in before if each.group == group.name]
        for each in own:
            stays = not heat.is_known or _stays(group, each, heat, partitions)
            moved = advanced(group, each, times, is_hot=stays)
            found += [] if moved is None else [moved]
        if partitions < 2:
            continue
        known = {each.hash for each in own}
        for key, shares in heat.shares.items():
            if key.hash not in known and sum(shares) * partitions >= _HOT:
                spread = _largest(group, shares)
                known.add(key.hash)
                found += [] if spread is None else [begun(group, key, spread, times)]
    return tuple(found)


def _largest(group: SplitGroup, shares: Sequence[float]) -> int | None:
    """The stream to spread: the largest, if that may be, as copies of the others cost more."""
    place = max(group.free, key=lambda each: shares[each])
    return place if 2 * shares[place] >= sum(shares) or len(shares) > 2 else None


def _stays(group: SplitGroup, each: SplitKey, heat: Heat, partitions: int) -> bool:
    shares = heat.of_hash(each.hash)
    if not shares or sum(shares) * partitions < _COLD:
        return False
    # Not for a little more: to change sides takes as long as rows live.
    return 2 * shares[each.spread] >= max(shares[place] for place in group.free)


def begun(group: SplitGroup, key: Key, spread: int, times: Mapping[str, Reached]) -> SplitKey:
    """A key that turns hot: rows that were not copied are waited for."""
    first = SplitKey(group.name, key.text, key.hash, spread, "copying")
    first = replace(first, until=_last_met(group, _others(group, first), times))
    return replace(first, phase="split") if _is_passed(group, first.until, times) else first


def advanced(
    group: SplitGroup, each: SplitKey, times: Mapping[str, Reached], *, is_hot: bool
) -> SplitKey | None:
    """A key before the next batch; None once it is whole again."""
    if is_hot:
        if each.phase == "clearing":
            return begun(group, Key(each.key, each.hash), each.spread, times)
        # Where it was ending, rows of the others are copied still.
        is_waited_for = each.phase == "copying" and not _is_passed(group, each.until, times)
        return each if is_waited_for else replace(each, phase="split")
    if each.phase == "split":
        each = replace(each, phase="ending", until=_last_met(group, [each.spread], times))
    if each.phase == "copying" or (each.phase == "ending" and _is_passed(group, each.until, times)):
        until = _last_met(group, _others(group, each), times)
        each = replace(each, phase="clearing", until=until)
    is_over = each.phase == "clearing" and _is_passed(group, each.until, times)
    return None if is_over else each


def _others(group: SplitGroup, each: SplitKey) -> list[int]:
    return [place for place in range(len(group.streams)) if place != each.spread]


def _is_passed(group: SplitGroup, until: int | None, times: Mapping[str, Reached]) -> bool:
    """Whether no row of any stream that comes lies before a time."""
    marks = [times[stream].watermark for stream in group.streams]
    return until is None or all(mark is not None and mark >= until for mark in marks)


def _last_met(group: SplitGroup, places: Sequence[int], times: Mapping[str, Reached]) -> int | None:
    """Up to when rows of some streams that have come may meet others; None if there are none."""
    ends = [
        seen + group.lasting[place]
        for place in places
        if (seen := times[group.streams[place]].seen) is not None
    ]
    return max(ends, default=None)
