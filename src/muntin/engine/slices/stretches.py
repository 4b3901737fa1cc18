"""Arrays of a log that lie in several stretches of memory, which kernels read as one.

The newest stretch is in memory and grows. Those before it may lie in files that are mapped: then
only the pages that somebody looks at are ever read. A *position* counts entries since the log
began, so it stays the same wherever the entry lies.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba.core import types
from numba.extending import intrinsic

from muntin._compiled import compiled
from muntin._typing import Ints

Int32s = npt.NDArray[np.int32]
_NONE = np.zeros(0, np.int64)


def _loader(kind: Any) -> Any:
    """A function for kernels that reads a number of some type, by address and index."""

    @intrinsic
    def load(context: Any, address: Any, index: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = builder.inttoptr(args[0], context.get_value_type(kind).as_pointer())
            value = builder.load(builder.gep(pointer, [args[1]]))
            return context.cast(builder, value, kind, types.int64)

        return types.int64(types.int64, types.int64), generate

    return load


load_int64 = _loader(types.int64)
load_int32 = _loader(types.int32)
load_uint8 = _loader(types.uint8)


class Stretched:
    """One array of a log, a row an entry.

    >>> array = Stretched(np.int32)
    >>> array.resize(4)
    >>> array.tail[:] = [1, 2, 3, 4]
    >>> array.keep(np.array([7, 8], np.int32))
    >>> array.whole(1, 3).tolist()
    [8, 1, 2]
    """

    def __init__(self, kind: Any, width: int | None = None) -> None:
        self._shape = () if width is None else (width,)
        self.kept: list[npt.NDArray[Any]] = []
        self.tail: npt.NDArray[Any] = np.zeros((0, *self._shape), kind)
        self._addresses = np.array([_address(self.tail)])

    @property
    def addresses(self) -> Ints:
        """Where each stretch lies, the one in memory last."""
        return self._addresses

    @property
    def nbytes(self) -> int:
        """Bytes in memory; stretches in files are not counted."""
        return self.tail.nbytes

    def keep(self, stretch: npt.NDArray[Any]) -> None:
        """Put a stretch before those in memory, behind those kept before."""
        self.kept.append(stretch)
        self._addresses = np.insert(self._addresses, -1, _address(stretch))

    def resize(self, room: int) -> None:
        """Make room for as many entries in memory."""
        if room > len(self.tail):
            longer = np.zeros((room, *self.tail.shape[1:]), self.tail.dtype)
            longer[: len(self.tail)] = self.tail
            self.replace(longer)

    def replace(self, tail: npt.NDArray[Any]) -> None:
        """Take another array for what is in memory."""
        self.tail = tail
        self._addresses[-1] = _address(tail)

    def shift(self, count: int, size: int) -> None:
        """Forget the first ``count`` of ``size`` entries in memory."""
        self.tail[: size - count] = self.tail[count:size]

    def drop(self, count: int) -> None:
        """Forget the first stretches in files."""
        del self.kept[:count]
        self._addresses = self._addresses[count:]

    def whole(self, skip: int, size: int) -> npt.NDArray[Any]:
        """All entries but the first ``skip`` ones, ``size`` of them, in one array."""
        held = np.concatenate([*self.kept, self.tail]) if self.kept else self.tail
        return held[skip : skip + size]


def _address(array: npt.NDArray[Any]) -> int:
    assert array.flags.c_contiguous
    address: int = array.__array_interface__["data"][0]
    return address if array.size else 0


class Trail(NamedTuple):
    """For each entry how far back the one before it lies that has the same place; 0 for none.

    ``leaps`` lead further back: to an earlier entry of the place, so that one of n is found in
    about log n steps; there are none where trails are short. ``firsts`` are the first positions of
    stretches, ``begin`` the first entry that is not forgotten.

    Skew-binary jump pointers, after Myers, "An applicative random-access stack".
    """

    firsts: Ints
    steps: Ints
    leaps: Ints
    begin: int


@compiled
def stretch_of(firsts: Ints, position: int) -> int:
    """The stretch that a position lies in."""
    low, high = 0, firsts.size - 1
    if position >= firsts[high]:
        return high
    while low < high:
        middle = (low + high + 1) >> 1
        if firsts[middle] <= position:
            low = middle
        else:
            high = middle - 1
    return low


@compiled
def int32_at(firsts: Ints, addresses: Ints, position: int) -> int:
    """The number at a position."""
    stretch = stretch_of(firsts, position)
    return int(load_int32(addresses[stretch], position - firsts[stretch]))


@compiled
def leap_at(trail: Trail, position: int) -> int:
    """How far an entry leaps; 0 where it does not."""
    stretch = stretch_of(trail.firsts, position)
    if not trail.leaps[stretch]:
        return 0
    return int(load_int32(trail.leaps[stretch], position - trail.firsts[stretch]))


@compiled
def first_since(trail: Trail, position: int, since: int) -> int:
    """The earliest entry at ``since`` or later that an entry there leads back to; or itself."""
    while True:
        stretch = stretch_of(trail.firsts, position)
        at = position - trail.firsts[stretch]
        if trail.leaps[stretch]:
            leap = load_int32(trail.leaps[stretch], at)
            if leap > 0 and position - leap >= since:
                position -= leap
                continue
        step = load_int32(trail.steps[stretch], at)
        if step == 0 or position - step < since:
            return position
        position -= step


@compiled
def before_it(trail: Trail, position: int) -> int:
    """The entry before one on its trail; -1 for none that is kept."""
    step = int32_at(trail.firsts, trail.steps, position)
    if step == 0 or position - step < trail.begin:
        return -1
    return position - step


@compiled
def last_before(trail: Trail, position: int, until: int) -> int:
    """The latest entry before ``until`` that one leads back to; or itself; -1 for none."""
    if position < until:
        return position if position >= trail.begin else -1
    return before_it(trail, first_since(trail, position, until))


@compiled
def leap_length(depth: int) -> int:
    """How many entries the leap of an entry passes that has so many before it."""
    length = 0
    while depth > 0:
        length = 1
        while 2 * length + 1 <= depth:
            length = 2 * length + 1
        depth -= length
    return length


@compiled
def leave_trail(
    trail: Trail,
    at: int,
    places: Ints,
    lasts: Ints,
    depths: Int32s,
    steps: Int32s,
    leaps: Int32s,
) -> None:
    """Add entries of places from the position ``at`` on, which lie in memory.

    ``lasts`` and ``depths`` are each place's last entry, and how many lie on its trail before it.
    """
    first = trail.firsts[trail.firsts.size - 1]
    for i in range(places.size):
        place, position = places[i], at + i
        last = lasts[place]
        step, leap, depth = 0, 0, 0
        if last >= trail.begin:
            depth = depths[place] + 1
            step = position - last
            leap = step
            if leaps.size and leap_length(depth) > 1:
                over = last - leap_at(trail, last)
                # A leap that ends before what is kept is as good as one that ends further back:
                # entries that follow know by it that theirs do, too.
                leap = position - over
                if over >= trail.begin:
                    leap += leap_at(trail, over)
        steps[position - first] = step
        if leaps.size:
            leaps[position - first] = leap
        lasts[place], depths[place] = position, depth
