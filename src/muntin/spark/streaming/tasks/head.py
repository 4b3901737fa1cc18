"""The head of a bucket's state: a few values, and the names of the pieces that hold the rest.

State is a *base*, which holds what was known of each group at the end of a batch, *stretches* of
sealed entries, and the *news* since: the partials that each batch brought. A base is written when
the news since the last one outweigh it, with a stretch of what was sealed since. So a byte that
comes in is written about three times, however much is kept; and a worker that has no state at hand
reads a base and the news since, while stretches lie where they are.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

# So many batches of news, and bytes, come before another base.
_FEWEST = 8
_LEAST = 1 << 15
# So many pieces of news are brought together in one.
_FAN_OUT = 32
# News that are older than the base serve workers that hold a state from before it.
_RECENT = 4
_LINE = 8


@dataclass
class Piece:
    """A piece in the file of a batch: a base, news, or a stretch of sealed entries.

    News are of the batches from ``first`` to ``last``, a stretch has the entries from the position
    ``first`` to before ``last``. Those of level 1 and above were put together from many of the
    level below.
    """

    name: str
    batch: int
    first: int
    last: int
    size: int
    level: int = 0


@dataclass
class Head:
    """What Spark keeps of a bucket.

    Attributes:
        plan: The name of the plan that the state is of.
        state: The values of `State` that JSON can hold; empty before the first batch.
        evicted: Up to where each store has forgotten.
        holds: Whether any rows are kept.
        frontiers: Up to where the slices of each store are sealed.
        entries: About how many entries are kept: those of the base, and all that came since.
        base: All that was kept at the end of a batch, but for stretches; None where there is none.
        stretches: The sealed entries of each store that keeps a log.
        news: What came since, and a little before, by batch.
        dropped: The last batch whose news are not there any more.
        line: The batches that wrote the state last, and the name that each gave it.
        is_light: Whether a base is written instead of news, as the last one took few bytes.
    """

    plan: str
    state: dict[str, Any] = field(default_factory=dict)
    evicted: list[int] = field(default_factory=list)
    holds: bool = False
    frontiers: list[int] = field(default_factory=list)
    entries: int = 0
    base: Piece | None = None
    stretches: list[list[Piece]] = field(default_factory=list)
    news: list[Piece] = field(default_factory=list)
    dropped: int = -1
    line: list[tuple[int, str]] = field(default_factory=list)
    is_light: bool = False

    def to_bytes(self) -> bytes:
        """The head as bytes, with a checksum in front."""
        data = zlib.compress(json.dumps(asdict(self), separators=(",", ":")).encode(), 1)
        return zlib.crc32(data).to_bytes(4, "big") + data

    @classmethod
    def of_bytes(cls, data: bytes) -> Head:
        """The head that `to_bytes` wrote; a ValueError where it has changed since."""
        if zlib.crc32(data[4:]).to_bytes(4, "big") != data[:4]:
            raise ValueError("its checksum does not fit")
        held = json.loads(zlib.decompress(data[4:]))
        held["base"] = None if held["base"] is None else Piece(**held["base"])
        held["news"] = [Piece(**each) for each in held["news"]]
        held["stretches"] = [[Piece(**each) for each in log] for log in held["stretches"]]
        held["line"] = [(batch, written) for batch, written in held["line"]]
        return cls(**held)

    def since(self, batch: int) -> list[Piece]:
        """The news of batches after one."""
        return [piece for piece in self.news if piece.last > batch]

    @property
    def unmerged(self) -> list[Piece]:
        """The news that are not in the base."""
        return self.since(-1 if self.base is None else self.base.last)

    def wants_base(self, fewest: int | None = None) -> bool:
        """Whether the news outweigh the base, and are of so many batches.

        It follows from what the batch before has left, so that all attempts at a batch agree.
        """
        news = self.unmerged
        weight = _LEAST if self.base is None else max(self.base.size, _LEAST)
        brought = sum(1 if piece.level == 0 else _FEWEST for piece in news)
        return brought >= (fewest or _FEWEST) and sum(each.size for each in news) >= weight

    def rebase(self, base: Piece, *, keep: bool) -> None:
        """Go on from a base; of the news before it, the most recent may be kept."""
        kept = [piece for piece in self.news[-_RECENT:] if piece.level == 0] if keep else []
        gone = self.news[: len(self.news) - len(kept)]
        self.dropped = max([self.dropped, *(piece.last for piece in gone)])
        if not keep:
            self.dropped = base.last
        self.base, self.news = base, kept

    def wrote(self, batch: int, written: str) -> None:
        """Note who wrote the state."""
        self.line = [*self.line[-_LINE + 1 :], (batch, written)]

    def age(self, written: str) -> int | None:
        """The batch that wrote a state of that name, if this state goes back to it."""
        found = [batch for batch, name in self.line if name == written]
        return found[0] if found and found[0] >= self.dropped else None

    def pieces(self) -> Iterator[Piece]:
        """All pieces."""
        if self.base is not None:
            yield self.base
        yield from self.news
        for log in self.stretches:
            yield from log

    @property
    def size(self) -> int:
        """Bytes of all that the state is read from."""
        base = 0 if self.base is None else self.base.size
        news = sum(piece.size for piece in self.unmerged)
        return base + news + sum(piece.size for log in self.stretches for piece in log)

    def batches(self) -> list[int]:
        """The batches whose files hold pieces."""
        return sorted({piece.batch for piece in self.pieces()})


def to_unite(pieces: list[Piece]) -> list[Piece]:
    """Pieces that are to be one: the oldest of a level, if there are many of those.

    The most recent ones are left as they are, for workers that hold a state from before them.
    """
    for level in sorted({piece.level for piece in pieces}):
        alike = [piece for piece in pieces if piece.level == level]
        if len(alike) >= _FAN_OUT + _RECENT:
            return alike[:_FAN_OUT]
    return []
