"""Buckets: what state is kept by, spread evenly over the partitions of Spark's shuffle."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count

_SEED = 42  # of Spark's hash partitioning
_MASK = 0xFFFFFFFF
_FEWEST = 16


@dataclass(frozen=True)
class Buckets:
    """So many buckets in so many partitions; bucket ``k`` lies in partition ``k mod partitions``.

    Spark decides by a hash where a row goes, and would send the numbers 0 to 15 to only 10 of 16
    partitions. So each bucket has a key whose hash leads to its partition.

    Where a run has several streams, each has ``count`` buckets of its own: those of the first
    stream come first. Behind them come as many that no stream owns, once a query brings rows of
    streams together: a bucket there holds what several streams send it.

    >>> Buckets(2, 4).keys
    (2, 0, 4, 1)
    >>> Buckets(2, 4, streams=3).total, Buckets(2, 4, streams=3).stream_of(7)
    (12, 1)
    >>> Buckets(2, 4, streams=3).with_rows.is_shared(12)
    True
    """

    partitions: int
    count: int
    streams: int = 1
    has_rows: bool = False

    @classmethod
    def by_default(cls, partitions: int) -> Buckets:
        """The same number of buckets in every partition, at least sixteen in all."""
        return cls(partitions, partitions * -(-_FEWEST // partitions))

    @property
    def total(self) -> int:
        """The buckets of all streams, and those that no stream owns."""
        return self.count * (self.streams + self.has_rows)

    @cached_property
    def with_rows(self) -> Buckets:
        """The same buckets, and those that no stream owns behind them."""
        return replace(self, has_rows=True)

    @property
    def shared(self) -> range:
        """The buckets that no stream owns."""
        return range(self.count * self.streams, self.total)

    def is_shared(self, bucket: int) -> bool:
        """Whether no stream owns a bucket."""
        return bucket >= self.count * self.streams

    def stream_of(self, bucket: int) -> int:
        """The stream whose state a bucket keeps."""
        return bucket // self.count

    def of_stream(self, stream: int) -> range:
        """The buckets of a stream."""
        return range(stream * self.count, (stream + 1) * self.count)

    @cached_property
    def keys(self) -> tuple[int, ...]:
        """The key of every bucket."""
        waiting: list[list[int]] = [[] for _ in range(self.partitions)]
        found = []
        numbers = count()
        for bucket in range(self.total):
            wanted = waiting[bucket % self.partitions]
            while not wanted:
                number = next(numbers)
                waiting[partition_of(number, self.partitions)].append(number)
            found.append(wanted.pop(0))
        return tuple(found)

    @cached_property
    def numbers(self) -> dict[int, int]:
        """The bucket of every key."""
        return {key: bucket for bucket, key in enumerate(self.keys)}

    def beside(self, bucket: int) -> int:
        """How many buckets the partition of a bucket has."""
        return len(range(bucket % self.partitions, self.total, self.partitions))


def partition_of(number: int, partitions: int) -> int:
    """The partition that Spark's shuffle sends a 32-bit integer to.

    >>> [partition_of(number, 16) for number in range(5)]
    [15, 3, 6, 3, 14]
    """
    signed = _murmur3(number)
    return (signed - (1 << 32) if signed >> 31 else signed) % partitions


def _murmur3(number: int) -> int:
    """The 32-bit Murmur3 hash of one integer."""
    mixed = (number * 0xCC9E2D51) & _MASK
    mixed = (_rotate(mixed, 15) * 0x1B873593) & _MASK
    state = (_rotate(_SEED ^ mixed, 13) * 5 + 0xE6546B64) & _MASK
    state ^= 4  # bytes
    state = ((state ^ (state >> 16)) * 0x85EBCA6B) & _MASK
    state = ((state ^ (state >> 13)) * 0xC2B2AE35) & _MASK
    return state ^ (state >> 16)


def _rotate(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (32 - bits))) & _MASK
