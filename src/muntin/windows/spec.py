"""The window specification: how long a window is, and how often one ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from muntin.errors import WindowError, did_you_mean
from muntin.windows.duration import DurationLike, duration, duration_text, is_plain
from muntin.windows.edges import TIME_LIMIT, EdgeClass, Slicing, edge_classes

Align: TypeAlias = Literal["end", "start"]
Measure: TypeAlias = Literal["time", "rows"]
Unit: TypeAlias = Literal["duration", "plain"]
Kind: TypeAlias = Literal["tumbling", "hopping", "overlapping", "on_demand", "by_rows"]
_ALIGNS, _MEASURES, _UNITS = get_args(Align), get_args(Measure), get_args(Unit)

Integers = TypeVar("Integers", int, npt.NDArray[np.int64])


@dataclass(frozen=True, init=False, repr=False)
class Window:
    """A window of a fixed range that ends once every slide.

    A window that ends at t covers the half-open interval [t - range, t), so a row at an edge
    belongs to the window that starts there. With `align="end"` windows end where
    (t - offset) mod slide = 0; with `align="start"` they start there. Windows are numbered:
    number k ends at `phase + k * slide`, also for negative k.

    Args:
        range: How much a window covers.
        slide: How far apart windows end; None for a window that is read on demand only.
        offset: Moves all windows; may be negative.
        align: Whether ends or starts lie on the slide. They differ when the range is no multiple
            of the slide.
        measure: Whether the range is in "time" or counts "rows".
        slide_measure: Whether the slide is in time or counts rows; as `measure` if not given.
            A range of time may slide by rows, not the reverse.
        unit: "duration" when the values are microseconds, "plain" when they are numbers in the
            time column's own unit. Inferred from how they are written if not given.

    >>> window = Window("12 minutes", "5 minutes")
    >>> window.range, window.slide, window.kind
    (720000000, 300000000, 'overlapping')
    >>> Window(18, 15).end(1), Window(18, 15).start(1)
    (15, -3)
    """

    range: int
    slide: int | None
    offset: int
    align: Align
    measure: Measure
    slide_measure: Measure
    unit: Unit

    def __init__(
        self,
        range: DurationLike,  # noqa: A002
        slide: DurationLike | None = None,
        offset: DurationLike = 0,
        align: Align = "end",
        measure: Measure = "time",
        *,
        slide_measure: Measure | None = None,
        unit: Unit | None = None,
    ) -> None:
        _check_choice("align", align, _ALIGNS)
        _check_choice("measure", measure, _MEASURES)
        slide_measure = slide_measure or measure
        _check_choice("slide_measure", slide_measure, _MEASURES)
        given = {"range": range, "slide": slide, "offset": offset}
        measures = {"range": measure, "slide": slide_measure, "offset": measure}
        timed = {name: value for name, value in given.items() if measures[name] == "time"}
        for name, value in given.items():
            if name not in timed:
                _check_counts_rows(name, value)
        fields = {
            "range": _positive("range", range),
            "slide": None if slide is None else _positive("slide", slide),
            "offset": duration(offset),
            "align": align,
            "measure": measure,
            "slide_measure": slide_measure,
            "unit": _unit(timed, unit),
        }
        for name, field in fields.items():
            object.__setattr__(self, name, field)
        self._check_together()

    def _check_together(self) -> None:
        if self.measure == "rows" and self.slide_measure == "time":
            raise WindowError(
                "a window that counts rows cannot slide by time",
                hint="give the slide as a number of rows, or the range as a duration",
            )
        if self.measure == "rows" and self.unit == "duration":
            raise WindowError("rows are not a duration", hint="leave out the unit")
        if self.offset and not self.periodic:
            raise WindowError(
                f"offset {self._text(self.offset)} has nothing to move",
                hint="only a window that slides in its own measure has an offset",
            )

    @property
    def periodic(self) -> bool:
        """Whether windows end at fixed distances, so that they have a phase, numbers and edges."""
        return self.slide is not None and self.slide_measure == self.measure

    @property
    def kind(self) -> Kind:
        """How windows lie to each other: apart (hopping), side by side (tumbling), overlapping.

        A window without a slide is "on_demand"; a range of time that slides by rows is "by_rows".
        """
        if self.slide is None:
            return "on_demand"
        if self.slide_measure != self.measure:
            return "by_rows"
        if self.slide == self.range:
            return "tumbling"
        return "hopping" if self.slide > self.range else "overlapping"

    @property
    def period(self) -> int:
        """After how long windows repeat: the slide, if it is in the range's own measure."""
        if self.slide is None or self.slide_measure != self.measure:
            raise WindowError(
                f"{self!r} has no periodic edges", hint="give it a slide in its own measure"
            )
        return self.slide

    @property
    def phase(self) -> int:
        """Where windows end within the slide: ends t have t mod slide = phase.

        >>> Window(7, 5).phase, Window(7, 5, align="start").phase
        (0, 2)
        """
        shift = self.range if self.align == "start" else 0
        return (self.offset + shift) % self.period

    def end(self, k: Integers) -> Integers:
        """The exclusive end of window number k."""
        return self.phase + k * self.period

    def start(self, k: Integers) -> Integers:
        """The inclusive start of window number k."""
        return self.phase + k * self.period - self.range

    def first_index(self, t: Integers) -> Integers:
        """The number of the earliest window that ends after t.

        A row at t is in the windows `first_index(t)` to `last_index(t)`, both included. Between
        hopping windows that range is empty.

        >>> window = Window(18, 15)
        >>> [window.start(k) for k in range(window.first_index(13), window.last_index(13) + 1)]
        [-3, 12]
        """
        return (t - self.phase) // self.period + 1

    def last_index(self, t: Integers) -> Integers:
        """The number of the latest window that starts at t or before."""
        return (t - self.phase + self.range) // self.period

    def edge_classes(self, slicing: Slicing = "pairs") -> tuple[EdgeClass, ...]:
        """Where a slicing cuts the stream for this window, as (period, phase) without repeats.

        >>> Window(18, 15).edge_classes()
        ((15, 0), (15, 12))
        """
        return edge_classes(self.range, self.period, self.phase, slicing)

    def __repr__(self) -> str:
        parts = [self._text(self.range)]
        if self.slide is not None:
            parts.append(str(self.slide) if self.kind == "by_rows" else self._text(self.slide))
        if self.offset:
            parts.append(f"offset={self._text(self.offset)}")
        if self.align != "end":
            parts.append(f"align={self.align!r}")
        if self.measure != "time":
            parts.append(f"measure={self.measure!r}")
        if self.slide_measure != self.measure:
            parts.append(f"slide_measure={self.slide_measure!r}")
        return f"Window({', '.join(parts)})"

    def _text(self, value: int) -> str:
        return repr(duration_text(value)) if self.unit == "duration" else str(value)


def _unit(values: dict[str, DurationLike | None], unit: Unit | None) -> Unit:
    """The unit shared by all values in time; zero has every unit."""
    if unit is not None:
        _check_choice("unit", unit, _UNITS)
    given = {name: value for name, value in values.items() if value is not None}
    plain = [name for name, value in given.items() if is_plain(value) and value != 0]
    timed = [name for name, value in given.items() if not is_plain(value) and duration(value) != 0]
    if timed and (unit == "plain" or (plain and unit is None)):
        number = f"{plain[0]} {given[plain[0]]!r} is" if plain else "the unit 'plain' asks for"
        raise WindowError(
            f"{timed[0]} {given[timed[0]]!r} is a duration, but {number} a plain number",
            hint="give all as durations for a timestamp column, all as integers for an integer one",
        )
    return unit or ("duration" if timed else "plain")


def _positive(name: str, value: DurationLike) -> int:
    number = duration(value)
    if number <= 0:
        raise WindowError(f"{name} {value!r} is not positive", hint=f"give a {name} above zero")
    if number >= TIME_LIMIT:
        raise WindowError(
            f"{name} {value!r} is too long", hint=f"a {name} lies below 2**62, 146,000 years"
        )
    return number


def _check_counts_rows(name: str, value: object) -> None:
    if value is not None and not is_plain(value):
        raise WindowError(
            f"{name} {value!r} does not count rows", hint="give it as an integer, such as 100"
        )


def _check_choice(name: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        raise WindowError(
            f"{name} must be one of {', '.join(known)}, not {value!r}",
            hint=did_you_mean(str(value), known),
        )
