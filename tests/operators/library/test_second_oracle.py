"""The product beside the thesis's own forms: the same rows and lifetimes on random streams."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import muntin
from muntin.operators.library import MODES, process, window_join

_SCHEMA = pa.schema({"ts": pa.int64(), "k": pa.int64(), "n": pa.int64()})
_QUERIES = {
    "join": "SELECT a.n AS x, b.n AS y FROM a [RANGE {0}] JOIN b [RANGE {0}] ON a.k = b.k",
    "absence": "SELECT a.n AS x, CAST(-1 AS BIGINT) AS y FROM a [RANGE {0}] "
    "WHERE NOT EXISTS (SELECT 1 FROM b [RANGE {0}] WHERE b.k = a.k)",
    "absence_join": "SELECT a.n AS x, c.n AS y FROM a [RANGE {0}] JOIN c [RANGE {0}] ON a.k = c.k "
    "WHERE NOT EXISTS (SELECT 1 FROM b [RANGE {0}] WHERE b.k = a.k)",
}


def tuples(seed: int, links: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    chance = np.random.default_rng(seed)
    count = int(chance.integers(1, 120))
    times = np.sort(chance.integers(0, 150, count))
    return times, chance.integers(0, links, count), chance.integers(0, 5, count)


def streamed(
    sql: str, given: tuple[np.ndarray, np.ndarray, np.ndarray], names: str, seed: int
) -> Counter[tuple[int, ...]]:
    """What the product shows, with rows in random batches, out of order within the lateness."""
    times, links, keys = given
    chance = np.random.default_rng(seed)
    arrivals = np.argsort(times + chance.integers(0, 8, times.size), kind="stable")
    stream = muntin.stream(sql, dict.fromkeys(names, _SCHEMA), time="ts", lateness=8)
    found: Counter[tuple[int, ...]] = Counter()

    def take(results: muntin.Results) -> None:
        found.update(tuple(row.values()) for row in results["q1"].to_pylist())

    while arrivals.size:
        size = int(chance.choice([1, 3, 10, 40]))
        batch, arrivals = arrivals[:size], arrivals[size:]
        for number, name in enumerate(names):
            own = batch[links[batch] == number]
            take(stream.feed(pa.table([times[own], keys[own], own], schema=_SCHEMA), name))
    take(stream.close())
    return found


@pytest.mark.parametrize("query", _QUERIES)
@pytest.mark.parametrize("seed", range(6))
def test_the_three_ways_to_process_give_the_rows_of_the_product(query: str, seed: int) -> None:
    names = "abc" if query == "absence_join" else "ab"
    given = tuples(seed, len(names))
    window = int(np.random.default_rng(seed).integers(1, 40))
    ours = streamed(_QUERIES[query].format(window), given, names, seed)
    for mode in MODES if query == "join" else ("nt", "upa"):
        run = process(query, mode, *given, window, most=20_000)
        # Tuple by tuple, a row may be shown and hidden at one instant.
        theirs = Counter(
            (start, end, x, y) for x, y, start, end in run.rows.tolist() if start < end
        )
        assert ours == theirs, mode


@pytest.mark.parametrize("seed", range(6))
def test_distinct_values_are_there_at_the_same_instants(seed: int) -> None:
    times, _, keys = tuples(seed, 1)
    given = times, np.zeros_like(times), keys
    window = int(np.random.default_rng(seed).integers(1, 40))
    rows = streamed(f"SELECT DISTINCT k FROM a [RANGE {window}]", given, "a", seed)
    ours = Counter((value, at) for begin, end, value in rows for at in range(begin, end))
    assert set(ours.values()) <= {1}
    for mode in MODES:
        run = process("distinct", mode, *given, window, most=5000)
        theirs = Counter(
            (int(keys[x]), at) for x, _, begin, end in run.rows.tolist() for at in range(begin, end)
        )
        assert ours == theirs, mode


@pytest.mark.parametrize("windows", [(20, 35), (12, 30, 7), (15, 9, 22, 15)])
@pytest.mark.parametrize("algorithm", ["eager", "eager_lazy_expiry", "lazy_restore"])
def test_the_algorithms_find_the_combinations_of_the_product(
    windows: tuple[int, ...], algorithm: str
) -> None:
    names = "abcd"[: len(windows)]
    on = [f"JOIN {name} [RANGE {length}] ON a.k = {name}.k"
          for name, length in zip(names[1:], windows[1:], strict=True)]  # fmt: skip
    shown = ", ".join(f"{name}.n AS n_{name}" for name in names)
    sql = f"SELECT {shown} FROM a [RANGE {windows[0]}] {' '.join(on)}"
    for seed in range(3):
        times, links, keys = tuples(seed, len(windows))
        ours = streamed(sql, (times, links, keys), names, seed)
        run = window_join(
            times, links, keys, windows, algorithm=algorithm, every=5, buckets=2, most=100_000
        )
        assert Counter(row[2:] for row in ours.elements()) == Counter(map(tuple, run.rows.tolist()))
