"""Time zones: how far local time is from UTC at any instant, and which instant a local time is.

Only the offset from UTC matters, as java.time gives it to Spark. A zone is data: what expressions
are bound in travels with them, and means the same wherever they are evaluated.
"""

from __future__ import annotations

import datetime as dt
from calendar import monthrange
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
import numpy.typing as npt

Seconds = npt.NDArray[np.int64]
Places = npt.NDArray[np.intp]

EPOCH = dt.date(1970, 1, 1).toordinal()
DAY = 86_400
YEARS = 400  # the Gregorian calendar repeats, and with it the yearly changes of every zone
CYCLE = 146_097 * DAY


@dataclass(frozen=True)
class YearlyChange:
    """A day of every year on which the offset changes.

    Attributes:
        month: From 1 to 12.
        day: The day of the month; negative ones count from its end, -1 being the last.
        weekday: Monday is 0. The change is on the first such day at `day` or after it; at it or
            before it if `day` is negative. None for `day` itself.
        seconds: From the midnight, in UTC, that this day begins with.
        offset: From UTC afterwards, in seconds.
    """

    month: int
    day: int
    weekday: int | None
    seconds: int
    offset: int

    def instant(self, year: int) -> int:
        """When it is, in seconds since 1970.

        >>> new_york = YearlyChange(3, 8, 6, 7 * 3600, -4 * 3600)
        >>> dt.datetime(1970, 1, 1) + dt.timedelta(seconds=new_york.instant(2013))
        datetime.datetime(2013, 3, 10, 7, 0)
        """
        last = monthrange(year, self.month)[1]
        day = dt.date(year, self.month, self.day if self.day > 0 else last + 1 + self.day)
        found = day.toordinal()
        if self.weekday is not None and self.day > 0:
            found += (self.weekday - day.weekday()) % 7
        elif self.weekday is not None:
            found -= (day.weekday() - self.weekday) % 7
        return (found - EPOCH) * DAY + self.seconds


@dataclass(frozen=True, eq=False)
class Zone:
    """A time zone.

    Attributes:
        name: What it is called.
        first: The offset from UTC before all changes, in seconds.
        changes: Instants in order, each with the offset from there on.
        yearly: What changes in every year after those.

    >>> Zone("+01:00", 3600).instants_of(np.array([7200])).tolist()
    [3600]
    """

    name: str
    first: int = 0
    changes: tuple[tuple[int, int], ...] = ()
    yearly: tuple[YearlyChange, ...] = ()

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Zone) and self._content == other._content)

    def __hash__(self) -> int:
        return hash(self.name)

    def __getstate__(self) -> dict[str, object]:
        return {item.name: getattr(self, item.name) for item in fields(self)}

    @property
    def _content(self) -> tuple[object, ...]:
        return self.name, self.first, self.changes, self.yearly

    @property
    def fixed(self) -> int | None:
        """The offset of a zone that has one at all times."""
        return None if self.changes or self.yearly else self.first

    @property
    def is_utc(self) -> bool:
        """Whether local times are those of UTC."""
        return self.fixed == 0

    def offsets_at(self, instants: Seconds) -> Seconds:
        """The offsets at instants, in seconds since 1970."""
        return self._offsets[self._places(self._instants, instants)]

    def instants_of(self, local: Seconds) -> Seconds:
        """The instants of local times, given in seconds since 1970 on the zone's own clock.

        As java.time resolves them: of two instants it is the first, and a time that the clock
        skips is as much later as the clock is put forward.
        """
        return local - self._offsets[self._places(self._local_changes, local)]

    def starts_of(self, local: Seconds) -> Seconds:
        """The instants at which days begin, given their midnights on the zone's own clock.

        A day whose midnight is skipped begins when the clock goes on.
        """
        places = self._places(self._local_changes, local)
        found = local - self._offsets[places]
        if self.fixed is not None:
            return found
        following = self._instants[np.minimum(places, self._instants.size - 1)]
        following = following + (local - self._within(local))
        return np.where(places < self._instants.size, np.minimum(found, following), found)

    def truncated(self, instants: Seconds, unit: int) -> Seconds:
        """Instants set back to a whole minute, hour or day on the zone's own clock.

        In an hour that comes twice, the clock does not jump back to the first.
        """
        offsets = self.offsets_at(instants)
        local = (instants + offsets) // unit * unit
        held = self.offsets_at(local - offsets) == offsets
        found: Seconds = np.where(held, local - offsets, self.instants_of(local))
        return found

    def _places(self, changes: Seconds, times: Seconds) -> Places:
        """How many of the changes are at or before each time."""
        if not times.size or not changes.size:
            return np.zeros(times.size, np.intp)
        low, high = np.searchsorted(changes, [times.min(), times.max()], side="right")
        if low == high and times.max() < self._repeats + CYCLE:
            return np.full(times.size, low)
        places: Places = np.searchsorted(changes, self._within(times), side="right")
        return places

    def _within(self, times: Seconds) -> Seconds:
        """Times after the last change that is listed, moved back by whole cycles."""
        within: Seconds = times - np.maximum((times - self._repeats) // CYCLE, 0) * CYCLE
        return within

    @cached_property
    def _year(self) -> int:
        """The year of the last change that is not a yearly one."""
        last = self.changes[-1][0] if self.changes else 0
        return (dt.datetime(1970, 1, 1) + dt.timedelta(seconds=last)).year

    @cached_property
    def _repeats(self) -> int:
        """An instant after which, in UTC and on every clock, there are yearly changes only."""
        return (dt.date(self._year + 1, 1, 2).toordinal() - EPOCH) * DAY

    @cached_property
    def _all(self) -> list[tuple[int, int]]:
        last = self.changes[-1][0] if self.changes else -(2**63)
        # Beyond a whole cycle, since both of its ends are told by several clocks.
        years = range(self._year, self._year + YEARS + 3)
        later = [(each.instant(year), each.offset) for year in years for each in self.yearly]
        return [*self.changes, *sorted(change for change in later if change[0] > last)]

    @cached_property
    def _instants(self) -> Seconds:
        return np.array([instant for instant, _ in self._all], np.int64)

    @cached_property
    def _offsets(self) -> Seconds:
        return np.array([self.first, *(offset for _, offset in self._all)], np.int64)

    @cached_property
    def _local_changes(self) -> Seconds:
        """The local times from which on the offset after each change holds without a doubt."""
        return self._instants + np.maximum(self._offsets[:-1], self._offsets[1:])


UTC = Zone("UTC")
