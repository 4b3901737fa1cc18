"""Edge classes as callers give them, checked and brought into one form."""

from __future__ import annotations

from collections.abc import Iterable
from math import lcm
from operator import index

import numpy as np

from muntin.errors import WindowError
from muntin.windows.edges import TIME_LIMIT, EdgeClass, reduce_classes

# Slides up to which comparing each with each in Python is as fast as in numpy.
FEW_SLIDES = 100


def checked_classes(classes: Iterable[tuple[int, int]]) -> tuple[EdgeClass, ...]:
    """The classes with 0 <= shift < slide, sorted and without repeats.

    A class `(slide, shift)` has an edge at every t with t mod slide = shift mod slide.

    >>> checked_classes([(6, -4), (3, 0), (6, 8)])
    ((3, 0), (6, 2))
    """
    return tuple(sorted({_checked(edge_class) for edge_class in classes}))


def reduced_classes(classes: Iterable[tuple[int, int]]) -> tuple[EdgeClass, ...]:
    """The fewest of the given classes that have the same edges together, checked and sorted.

    >>> reduced_classes([(10, 5), (5, 0), (10, 3), (5, 5)])
    ((5, 0), (10, 3))
    """
    checked = checked_classes(classes)
    slides = sorted({slide for slide, _ in checked})
    if len(slides) <= FEW_SLIDES or slides[-1] > TIME_LIMIT:
        return reduce_classes(checked)
    # A class is dropped for one that is kept or was itself dropped for another: same edges.
    every, known = np.array(slides, dtype=np.int64), set(checked)
    smaller = {
        slide: every[:place][slide % every[:place] == 0].tolist()
        for place, slide in enumerate(slides)
    }
    return tuple(
        (slide, shift)
        for slide, shift in checked
        if not any((other, shift % other) in known for other in smaller[slide])
    )


def period_of(classes: Iterable[EdgeClass]) -> int:
    """The composite slide: the least common multiple of all slides, 1 where there is none.

    >>> period_of([(4, 3), (6, 0)]), period_of([])
    (12, 1)
    """
    return lcm(*{slide for slide, _ in classes})


def _checked(edge_class: tuple[int, int]) -> EdgeClass:
    try:
        slide, shift = (index(number) for number in edge_class)
    except (TypeError, ValueError):
        raise WindowError(
            f"{edge_class!r} is not an edge class", hint="give (slide, shift), two whole numbers"
        ) from None
    if slide <= 0:
        raise WindowError(
            f"the slide of edge class ({slide}, {shift}) is not positive",
            hint="a slide is at least 1 time unit",
        )
    return slide, shift % slide
