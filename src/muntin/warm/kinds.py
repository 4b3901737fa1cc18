"""Kernels compiled ahead: small plans of every kind are run, so that first calls find them on disk.

numba compiles a kernel for the types of its arguments when it is first called. Nothing here names
a kernel: what is run comes from the registries of aggregates, types and strategies, and whatever
kernels that takes are compiled.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from muntin.warm import plans, spark, streams

# Objects between two searches for garbage.
_YOUNG = 50_000


def warm(processes: int = 2) -> Iterator[tuple[str, int]]:
    """Compile what plans of every kind need; each kind of plan, and how many kernels it took.

    The kinds are dealt out to processes. What is on disk already is not compiled again.

    >>> from muntin.warm import KINDS
    >>> sorted(KINDS)[:2]
    ["Spark's stages", 'aggregates that can be inverted']
    """
    if processes == 1:
        yield from map(_compile, KINDS)
        return
    # Not forked: this process may have threads, which a copy of it lacks.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        yield from pool.map(_compile, KINDS)


def _compile(kind: str) -> tuple[str, int]:
    from muntin._compiled import compilations  # noqa: PLC0415  it brings numba

    logging.getLogger("muntin").setLevel(logging.ERROR)  # this is the time to compile
    before, thresholds = compilations(), gc.get_threshold()
    # A compiler makes millions of objects, among which garbage is looked for all the time.
    gc.set_threshold(_YOUNG, *thresholds[1:])
    try:
        KINDS[kind]()
    finally:
        gc.set_threshold(*thresholds)
    return kind, compilations() - before


# The first two share few kernels, so that processes side by side compile few of them twice.
KINDS: dict[str, Callable[[], None]] = {
    "aggregates that can be inverted": lambda: plans.aggregates(invertible=True),
    "all other aggregates": lambda: plans.aggregates(invertible=False),
    "tables": plans.joins,
    "Spark's stages": spark.stages,
    "strategies and optimizers": plans.choices,
    "predicates": plans.predicates,
    "groups": plans.groups,
    "shapes of data": plans.shapes,
    "streams": streams.streams,
    "rows with lifetimes": streams.row_queries,
}
