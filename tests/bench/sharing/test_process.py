"""The measuring process: one core, one thread, errors come through, and nothing stays behind."""

from __future__ import annotations

import multiprocessing
import os

import pytest

from muntin.errors import MuntinError
from muntin_bench.sharing.process import one_core


def surroundings() -> tuple[int, str | None, int]:
    import polars as pl

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    return cores, os.environ.get("NUMBA_NUM_THREADS"), pl.thread_pool_size()


def test_the_process_is_kept_to_one_core_and_this_one_is_not() -> None:
    before = surroundings(), dict(os.environ)
    with one_core() as process:
        assert process.call(surroundings) == (1, "1", 1)
        assert process.call(os.getpid) != os.getpid()
        # It is the same process that answers every call.
        assert process.call(os.getpid) == process.call(os.getpid)
    assert (surroundings(), dict(os.environ)) == before
    assert not multiprocessing.active_children()


def test_an_error_comes_through() -> None:
    with one_core() as process:
        with pytest.raises(AssertionError, match="ZeroDivisionError"):
            process.call(divmod, 1, 0)
        assert process.call(divmod, 7, 2) == (3, 1)


def test_a_process_that_ends_is_told_of() -> None:
    with one_core() as process, pytest.raises(MuntinError, match="ended"):
        process.call(os._exit, 3)
