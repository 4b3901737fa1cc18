"""An answer: a frame, and what it is worth."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol

import pyarrow as pa

from muntin.display import count

Isolation = Literal["ws", "lws"]
ISOLATIONS: tuple[Isolation, ...] = ("lws", "ws")


class AsOf(NamedTuple):
    """How far a stream was when it was asked: its latest event time, and W. None before a row."""

    latest: Any
    watermark: Any


class Covers(NamedTuple):
    """A window of whole slices, from its start (inclusive) to its end (exclusive)."""

    start: Any
    end: Any


class Told(Protocol):
    """What is known of an answer; what takes time is made when somebody looks at it."""

    @property
    def table(self) -> pa.Table:
        """The rows."""

    @property
    def exact(self) -> bool:
        """Whether they are exact."""

    @property
    def rows(self) -> int:
        """How many rows of the stream went into them."""

    @property
    def covers(self) -> Covers | None:
        """The window of whole slices."""

    @property
    def as_of(self) -> AsOf:
        """How far the stream was."""

    @property
    def batch(self) -> int:
        """The number of the batch."""

    @property
    def source(self) -> str:
        """What it comes from."""


class Facts(NamedTuple):
    """What is told of an answer, all of it there."""

    table: pa.Table
    exact: bool
    rows: int
    covers: Covers | None
    as_of: AsOf
    batch: int
    source: str


def _as_is(table: pa.Table) -> Any:
    return table


class Answer:
    """What a question was answered, and what the answer is worth.

    Each aggregate ``a`` is exact for the window ``covers``. Where ``exact`` is false, that window
    holds rows which the one asked for may not: then ``a_low`` and ``a_high`` stand beside ``a``,
    and the answer to the question lies between them; NULL is a bound that is not known.

    Attributes:
        table: The rows as a pyarrow Table.
        exact: Whether the window asked for holds the same rows as ``covers``.
        covers: The smallest window of whole slices that holds the one asked for; None while the
            stream has no row.
        as_of: The latest event time and W of the version that was read.
        batch: The number of that version's batch.
        isolation: ``lws`` if it was the newest version when the answer was ready, else ``ws``.
        source: The keep, and how it was read.
        rows: How many rows of the stream went into it.
        milliseconds: How long it took.
    """

    def __init__(
        self,
        told: Told,
        isolation: Isolation,
        milliseconds: float,
        restore: Callable[[pa.Table], Any] = _as_is,
    ) -> None:
        self._told = told
        self.exact = told.exact
        self.batch = told.batch
        self.isolation = isolation
        self.rows = told.rows
        self.milliseconds = milliseconds
        self._restore = restore

    @cached_property
    def table(self) -> pa.Table:
        """The rows as a pyarrow Table."""
        return self._told.table

    @cached_property
    def covers(self) -> Covers | None:
        """The smallest window of whole slices that holds the one asked for."""
        return self._told.covers

    @property
    def as_of(self) -> AsOf:
        """The latest event time and W of the version that was read."""
        return self._told.as_of

    @property
    def source(self) -> str:
        """The keep, and how it was read."""
        return self._told.source

    @property
    def frame(self) -> Any:
        """The rows, in the kind of frame the stream's batches come in."""
        return self._restore(self.table)

    def facts(self) -> dict[str, Any]:
        """All but the rows, by name, as machines read it."""
        covers = None if self.covers is None else [str(each) for each in self.covers]
        return {
            "exact": self.exact,
            "covers": covers,
            "latest": None if self.as_of.latest is None else str(self.as_of.latest),
            "watermark": None if self.as_of.watermark is None else str(self.as_of.watermark),
            "batch": self.batch,
            "isolation": self.isolation,
            "source": self.source,
            "rows": self.rows,
            "milliseconds": round(self.milliseconds, 3),
        }

    def __repr__(self) -> str:
        worth = "exact" if self.exact else "bounds"
        found = f"{count(self.table.num_rows, 'row')}, {worth}, from {self.source}"
        return f"<Answer of {found}, batch {self.batch}, {self.milliseconds:.1f} ms>"
