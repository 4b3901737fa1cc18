"""Settings of all tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from muntin.aggregates import names, unregister

# The first call of a kernel compiles it, and machines are shared: no test asserts a time.
settings.register_profile("muntin", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("muntin")

# Files whose tests start processes of their own, and wait for them: first, so that others fill
# the time.
_FIRST = ("test_faults", "test_cluster", "test_demo", "test_run", "test_session", "test_examples")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first; all others stay as they are."""
    items.sort(key=lambda item: _FIRST.index(item.path.stem) if item.path.stem in _FIRST else 99)


@pytest.fixture(autouse=True)
def _registered_aggregates_go() -> Iterator[None]:
    """Forget what a test registered: which files share a process differs from run to run."""
    before = names()
    yield
    for name in names() - before:
        unregister(name)
