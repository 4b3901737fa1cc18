"""Settings of all tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from muntin.aggregates import names, unregister

# The first call of a kernel compiles it, and machines are shared: no test asserts a time.
settings.register_profile("muntin", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("muntin")

# Files whose tests start processes of their own, and wait for them: first, so that others fill
# the time.
_FIRST = ("test_faults", "test_cluster", "test_demo", "test_run", "test_session", "test_examples")
# What `--fast` leaves out with Spark: benchmarks, other processes, databases, whole documents.
_SLOW = ("bench", "test_warm.py", "test_examples.py", "test_docs.py", "test_site.py")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds ``--fast``."""
    text = "one case of every test, without Spark, benchmarks and what is marked slow"
    parser.addoption("--fast", action="store_true", help=text)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the longest files first; all others stay as they are."""
    items.sort(key=lambda item: _FIRST.index(item.path.stem) if item.path.stem in _FIRST else 99)
    if config.getoption("--fast", default=False):
        kept = {(item.path, _name(item)): item for item in reversed(items) if _is_fast(item)}
        chosen = set(kept.values())
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = [item for item in items if item in chosen]


def _name(item: pytest.Item) -> str:
    """The name of a test without that of its case."""
    return item.nodeid.partition("[")[0]


def _is_fast(item: pytest.Item) -> bool:
    inside = item.path.relative_to(Path(__file__).parent).parts if _is_here(item) else ()
    marked = any(item.get_closest_marker(name) for name in ("spark", "slow"))
    return not (marked or set(inside) & {*_SLOW, "spark"})


def _is_here(item: pytest.Item) -> bool:
    return item.path.is_relative_to(Path(__file__).parent)


@pytest.fixture(autouse=True)
def _registered_aggregates_go() -> Iterator[None]:
    """Forget what a test registered: which files share a process differs from run to run."""
    before = names()
    yield
    for name in names() - before:
        unregister(name)
