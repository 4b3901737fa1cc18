"""Random streams with everything that breaks aggregators: NULL, NaN, ties, gaps, disorder."""

from __future__ import annotations

import random

import pyarrow as pa

MINUTE = 60_000_000
SHAPES = ("empty", "one", "ties", "dense", "gaps", "negative", "far", "disorder")

SCHEMA = pa.schema(
    {
        "ts": pa.timestamp("us", "UTC"),
        "k": pa.string(),
        "g": pa.int64(),
        "x": pa.float64(),
        "n": pa.int64(),
        "b": pa.bool_(),
    }
)
_WILD = [0.0, -0.0, 1e308, -1e308, 5e-324, 1e16, -1e16, 1.0, 0.1, 2.0**-1022, 1e-300]
_SPECIAL = [float("nan"), float("inf"), float("-inf")]


def stream(rng: random.Random, *, wild: bool = True) -> pa.Table:
    """A stream of a random shape; ``wild`` allows values on which other engines disagree."""
    times = _times(rng, rng.choice(SHAPES))
    nulls = rng.choice([0.0, 0.0, 0.2, 0.9])

    def column(draw: object) -> list[object]:
        return [None if rng.random() < nulls else draw() for _ in times]  # type: ignore[operator]

    keys = rng.choice([["a"], ["a", "b", ""], [f"key{i}" for i in range(40)]])
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "k": column(lambda: rng.choice(keys)),
            "g": column(lambda: rng.randrange(-1, rng.choice([1, 3, 30]))),
            "x": column(lambda: _double(rng, wild)),
            "n": column(lambda: _integer(rng, wild)),
            "b": column(lambda: rng.random() < 0.5),
        },
        schema=SCHEMA,
    )


def _times(rng: random.Random, shape: str) -> list[int]:
    origin = rng.choice([0, 1_381_152_600_000_000])
    if shape == "empty":
        return []
    if shape == "one":
        return [origin + rng.randrange(60 * MINUTE)]
    size = rng.choice([2, 10, 60, 200])
    if shape == "ties":
        return sorted(origin + rng.randrange(4) * MINUTE for _ in range(size))
    if shape == "gaps":
        jumps = [rng.choice([0, 1, MINUTE, 400 * MINUTE, 10**15]) for _ in range(size)]
        return [origin + sum(jumps[: i + 1]) % 10**17 for i in range(size)]
    if shape == "negative":
        return sorted(rng.randrange(-60 * MINUTE, 20 * MINUTE) for _ in range(size))
    if shape == "far":
        return sorted(rng.choice([0, 2 * 10**17]) + rng.randrange(MINUTE) for _ in range(size))
    times = [origin + rng.randrange(60 * MINUTE) for _ in range(size)]
    return times if shape == "disorder" else sorted(times)


def _double(rng: random.Random, wild: bool) -> float:
    if wild and rng.random() < 0.3:
        return rng.choice(_WILD + (_SPECIAL if rng.random() < 0.2 else []))
    if rng.random() < 0.05:
        return float("nan")
    return rng.choice([1.0, round(rng.uniform(-50, 200), 2), rng.gauss(0, 1e3)])


def _integer(rng: random.Random, wild: bool) -> int:
    if wild and rng.random() < 0.1:
        return rng.choice([2**63 - 1, -(2**63), 2**62, 0])
    return rng.choice([0, 1, -1, 100, rng.randrange(-1000, 1000)])
