"""Query sets made by the parameters of the thesis's experiments, seeded.

Section 5.4.1 of "Algorithms and Optimizations for Incremental Window-Based Aggregations".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from muntin._typing import Floats, Ints
from muntin.errors import WindowError, did_you_mean
from muntin.planner.costs.formula import WindowQuery, check_rate

Slides: TypeAlias = Literal["normal", "prime", "factors"]


@dataclass(frozen=True)
class Workload:
    """Queries over one stream, and its rate in rows per time unit."""

    queries: tuple[WindowQuery, ...]
    rate: float


def generate(
    queries: int,
    max_slide: int,
    rate: float,
    skew: float = 0.0,
    overlap: int = 10,
    slides: Slides = "normal",
    seed: int = 0,
    *,
    fragments: bool = False,
) -> Workload:
    """A workload of so many queries; the same arguments give the same one.

    Args:
        queries: How many.
        max_slide: The longest slide; the shortest is 1, or 2 where slides are prime.
        rate: Rows per time unit.
        skew: Of the Zipf distribution over slides: 0 makes all as likely, more favours long
            slides, less than 0 short ones.
        overlap: Range over slide is drawn evenly from 1 to this.
        slides: Any (`"normal"`), primes only (`"prime"`, which share least), or the divisors of
            `max_slide` (`"factors"`, as in section 7.3.1).
        seed: Another one gives other queries.
        fragments: Whether ranges may be no multiple of the slide, so that windows cut twice.

    >>> [(each.range, each.slide) for each in generate(4, 10, 1.0, seed=3).queries]
    [(1, 1), (3, 3), (36, 9), (30, 6)]
    """
    _check(queries, max_slide, overlap)
    check_rate(rate)
    random = np.random.default_rng(seed)
    choices = _choices(max_slide, slides)
    drawn = choices[random.choice(len(choices), queries, p=_zipf(len(choices), skew))]
    if fragments:
        ranges = np.rint(drawn * random.uniform(1, overlap, queries)).astype(np.int64)
    else:
        ranges = drawn * random.integers(1, overlap + 1, queries)
    return Workload(
        tuple(
            WindowQuery(range_, slide, name=f"q{number}")
            for number, (range_, slide) in enumerate(
                zip(ranges.tolist(), drawn.tolist(), strict=True)
            )
        ),
        float(rate),
    )


def _choices(max_slide: int, slides: Slides) -> Ints:
    every: Ints = np.arange(1, max_slide + 1, dtype=np.int64)
    if slides == "normal":
        return every
    if slides == "factors":
        return 1 + np.flatnonzero(max_slide % every == 0)
    if slides == "prime":
        return np.flatnonzero(_is_prime(max_slide))
    raise WindowError(
        f"slides cannot be {slides!r}", hint=did_you_mean(str(slides), get_args(Slides))
    )


def _is_prime(last: int) -> npt.NDArray[np.bool_]:
    sieve = np.ones(last + 1, dtype=bool)
    sieve[:2] = False
    for number in range(2, int(last**0.5) + 1):
        if sieve[number]:
            sieve[number * number :: number] = False
    return sieve


def _zipf(size: int, skew: float) -> Floats:
    """Chances by rank, the longest slide first; in logarithms, so that no skew overflows."""
    logs = -skew * np.log(np.arange(size, 0, -1))
    chances: Floats = np.exp(logs - logs.max())
    chances /= chances.sum()
    return chances


def _check(queries: int, max_slide: int, overlap: int) -> None:
    least = {"queries": (queries, 1), "max_slide": (max_slide, 2), "overlap": (overlap, 1)}
    for name, (value, lowest) in least.items():
        if value < lowest:
            raise WindowError(f"{name} is {value}", hint=f"give at least {lowest}")
