"""How long single steps take: each is timed by the processor's counter, within compiled code."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils as _cgutils
from numba.extending import intrinsic

from muntin._typing import Ints
from muntin.aggregators import Aggregator, rings
from muntin.aggregators.encodings import registry
from muntin.aggregators.kernels import slide_compiled
from muntin_bench.aggregators.work import STREAM, Workload, full

cgutils: Any = _cgutils
PERCENTILES = (50.0, 99.0, 99.99, 100.0)


def _cycles(typing_context: Any) -> Any:
    """The processor's time stamp counter."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(64), [])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.readcyclecounter")
        return builder.call(function, [])

    return types.int64(), generate


cycles: Any = intrinsic(_cycles)


def _step_by_step(
    op: Any, state: Any, ranges: Ints, partials: Any, answers: Any, taken: Ints, first: int
) -> int:
    """Slide partials one by one; stops where the state has to grow."""
    for i in range(first, len(partials)):
        begin = cycles()
        done = slide_compiled(op, state, ranges, partials[i : i + 1], answers, 0)
        taken[i] = cycles() - begin
        if done == 0:
            return i
    return len(partials)


# Not cached on disk: the cache would not see that a technique has changed.
step_by_step: Any = numba.njit(nogil=True)(_step_by_step)


@dataclass(frozen=True)
class Latency:
    """How long the steps of one technique took on one window: percentiles in nanoseconds."""

    technique: str
    window: int
    steps: int
    nanoseconds: tuple[float, ...]


def latencies(work: Workload, windows: Sequence[int], budget: float) -> Iterator[Latency]:
    """Time single steps: at least a whole round of the window where the budget allows it."""
    nanoseconds = nanoseconds_per_cycle()
    for window in windows:
        for technique in work.techniques:
            side = full(work, technique, window)
            taken = _timed(side, work, max(2 * window, 1 << 15), budget)
            found = np.percentile(taken, PERCENTILES, method="higher") * nanoseconds
            yield Latency(technique, window, len(taken), tuple(found.tolist()))


def _timed(side: Aggregator, work: Workload, steps: int, budget: float) -> Ints:
    """Cycles of each step, until there are enough of them or time is up."""
    chunks: list[Ints] = []
    size, done, begin = 1, 0, time.perf_counter()
    while done < steps and time.perf_counter() - begin < budget:
        size = min(4 * size, STREAM // 4, steps - done)
        chunks.append(timed_steps(side, work, done, size))
        done += size
        if done < 64:
            # The first call compiled, or went over a cold cache.
            begin = time.perf_counter()
    return np.concatenate(chunks[1:] or chunks)


def timed_steps(side: Aggregator, work: Workload, start: int, size: int) -> Ints:
    """Slide values of the stream into a full window one by one; cycles of each step."""
    window = side.window
    encoding: Any = window.encoding
    values = registry.values_of(window.aggregate, work.take(start, size))
    partials = encoding.lift(values, encoding.op.empty(size))
    taken = np.zeros(size, np.int64)
    answers = encoding.op.empty(1)
    done = step_by_step(encoding.op, side.state, window.falling, partials, answers, taken, 0)
    while done < size:
        window.state = rings.grown(encoding.op, side.state, 2 * rings.room(side.state))
        done = step_by_step(
            encoding.op, window.state, window.falling, partials, answers, taken, done
        )
    return taken


def _read_cycles() -> Any:
    return cycles()


def nanoseconds_per_cycle() -> float:
    """What one count of the processor's counter stands for."""
    read: Any = numba.njit(_read_cycles)
    read()
    begin, first = time.perf_counter_ns(), read()
    time.sleep(0.05)
    return (time.perf_counter_ns() - begin) / float(read() - first)
