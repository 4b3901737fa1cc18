"""Exact numbers cut into limbs that add up without carries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True)
class Limbs:
    """Where the limbs of a number lie: limb k weighs 2**(base + width * k).

    A number gives each limb less than 2**width, with the number's sign. `width` leaves room to add
    up a whole window of them in 64 bits, so carries wait until an answer is read. All numbers of a
    state share the limbs; wider ones are reached by adding limbs at either end, which leaves the
    limbs in place as they are.
    """

    width: int
    base: int
    count: int

    @classmethod
    def around(cls, width: int, low: int, high: int, spare: bool) -> Self:
        """The fewest limbs for bits `low` to `high`, exclusive.

        With `spare`, half of the bits left over lie below: the next batch may hold smaller numbers
        as well as larger ones.
        """
        count = max(-(-(high - low) // width), 1)
        free = count * width - (high - low)
        return cls(width, low - free // 2 if spare else low, count)

    @property
    def top(self) -> int:
        """The bit above the last limb."""
        return self.base + self.width * self.count

    def widened(self, low: int, high: int) -> Limbs:
        """As many limbs more at both ends as bits `low` to `high` need."""
        below = max(-(-(self.base - low) // self.width), 0)
        above = max(-(-(high - self.top) // self.width), 0)
        return Limbs(self.width, self.base - below * self.width, self.count + below + above)

    def split(self, units: int, grid: int) -> list[int]:
        """The limbs of `units * 2**-grid`.

        >>> Limbs(width=8, base=0, count=2).split(-0x1234, grid=0)
        [-52, -18]
        """
        shift = self.base + grid
        size = abs(units) >> shift if shift >= 0 else abs(units) << -shift
        sign = -1 if units < 0 else 1
        mask = (1 << self.width) - 1
        return [sign * ((size >> (self.width * k)) & mask) for k in range(self.count)]

    def joined(self, limbs: list[int], grid: int) -> int:
        """The units that the limbs add up to.

        >>> Limbs(width=8, base=0, count=2).joined([-52, -18], grid=0) == -0x1234
        True
        """
        units = sum(limb << (self.width * k) for k, limb in enumerate(limbs))
        shift = self.base + grid
        return units << shift if shift >= 0 else units >> -shift


def limb_width(window: int) -> int:
    """Bits a limb may take from one number, if `window` of them add up.

    Two bits to spare: a square enters as three numbers, and limbs cut by Python stand beside limbs
    that were added up. A limb without its carries is an exact double.
    """
    return min(60 - window.bit_length(), 53)
