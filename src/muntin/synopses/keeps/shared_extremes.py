"""OrderedSharing over the slices of a keep: extremes of windows that end now, kept between batches.

A window that is asked for leaves its answer, and the slice it came from. A shorter one takes the
answer of the next longer, as long as that slice lies in its own window; a batch moves an answer on
by its own entries alone. *Aggregate Sharing in Stream Databases*, section 6, with the time of the
entry instead of that of the calculation; rows may be out of order.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from muntin._typing import Bools
from muntin.aggregates.columns.codes import NOTHING
from muntin.aggregates.columns.column import PartColumn
from muntin.aggregates.columns.extremes import ExtremeColumn
from muntin.synopses.keeps.block import Block

# Batches by which an answer that nobody asked for meanwhile is moved on.
_RECENT = 16
_MOST_LISTS = 4096
_MOST_NODES = 64

# Which extreme: the column, the group, and the cells that are taken.
_Key = tuple[int, int, bytes]


class _Node(NamedTuple):
    """The answer of the windows of so many slices: its code, and the youngest slice that has it."""

    size: int
    code: int
    slice: int


@dataclass
class _List:
    """Answers by size, and so by code, after so many blocks."""

    serial: int
    nodes: list[_Node]


class Latest(NamedTuple):
    """What a version has: its blocks, how many there ever were, and the newest slice."""

    blocks: Sequence[Block]
    serial: int
    newest: int


class SharedExtremes:
    """Answers that questions left, for those after them. Readers take turns; each takes a look."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lists: dict[_Key, _List] = {}
        self._recent: deque[tuple[int, Block]] = deque(maxlen=_RECENT)
        self.shared = 0
        self.scans = 0

    def __len__(self) -> int:
        return sum(len(each.nodes) for each in list(self._lists.values()))

    def add(self, serial: int, block: Block) -> None:
        """Take note of a batch's entries."""
        with self._lock:
            self._recent.append((serial, block))

    def one_cell(
        self, latest: Latest, column: int, group: int, wanted: Bools, low: int
    ) -> PartColumn | None:
        """A column of one cell: the extreme from a slice on. None where codes do not tell it."""
        columns = [block.columns[column] for block in latest.blocks]
        if not columns or not all(
            isinstance(each, ExtremeColumn) and each.marks is None and not each.values.moves
            for each in columns
        ):
            return None
        first = columns[0]
        assert isinstance(first, ExtremeColumn)
        return first.one_code(self._code(latest, column, group, wanted, low))

    def _code(self, latest: Latest, column: int, group: int, wanted: Bools, low: int) -> int:
        key = column, group, wanted.tobytes()
        size = latest.newest + 1 - low
        with self._lock:
            held = self._lists.get(key)
            if held is not None and held.serial > latest.serial:
                # What is left belongs to a later version.
                return _scanned(latest, column, group, wanted, low)[0]
            nodes = [] if held is None else self._moved(held, latest, column, group, wanted)
            at = bisect_left(nodes, size, key=lambda node: node.size)
            if at < len(nodes) and nodes[at].slice >= low:
                self.shared += 1
                found = nodes[at].code
            else:
                self.scans += 1
                found, place = _scanned(latest, column, group, wanted, low)
                if found != NOTHING:
                    nodes = _with(nodes, _Node(size, found, place))
            if len(self._lists) >= _MOST_LISTS and key not in self._lists:
                self._lists.clear()
            self._lists[key] = _List(latest.serial, nodes)
            return found

    def _moved(
        self, held: _List, latest: Latest, column: int, group: int, wanted: Bools
    ) -> list[_Node]:
        """The answers after the blocks that came since; none where some are not known."""
        since = [b for serial, b in self._recent if held.serial < serial <= latest.serial]
        if len(since) < latest.serial - held.serial:
            return []
        found: list[_Node] = []
        for node in held.nodes:
            low = latest.newest + 1 - node.size
            code, place = _best(since, column, group, wanted, low)
            is_better = code < node.code or (code == node.code and place > node.slice)
            moved = _Node(node.size, code, place) if is_better else node
            if moved.slice >= low:
                found.append(moved)
        return _ordered(found)


def _with(nodes: Sequence[_Node], node: _Node) -> list[_Node]:
    """The answers with one more: of smaller windows those that differ, and larger ones."""
    others = [each for each in nodes if each.size != node.size]
    return _ordered(sorted([*others, node]))[-_MOST_NODES:]


def _ordered(nodes: Sequence[_Node]) -> list[_Node]:
    """Without those that the next larger one answers."""
    return [
        node
        for at, node in enumerate(nodes)
        if at + 1 == len(nodes) or node[1:] != nodes[at + 1][1:]
    ]


def _scanned(latest: Latest, column: int, group: int, wanted: Bools, low: int) -> tuple[int, int]:
    return _best(latest.blocks, column, group, wanted, low)


def _best(
    blocks: Iterable[Block], column: int, group: int, wanted: Bools, low: int
) -> tuple[int, int]:
    """The smallest code of a group from a slice on, and the youngest slice that has it."""
    best, place = int(NOTHING), low - 1
    for block in blocks:
        if block.last < low:
            continue
        for start, end in block.spans(group, wanted, low, block.last + 1):
            values = block.columns[column]
            assert isinstance(values, ExtremeColumn)
            codes = values.least[start:end]
            least = int(codes.min())
            if least > best or least == NOTHING:
                continue
            youngest = int(block.slices[end - 1 - int(codes[::-1].argmin())])
            if least < best or youngest > place:
                best, place = least, youngest
    return best, place
