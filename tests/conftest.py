"""Settings of all tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from muntin.aggregates import names, unregister

# The first call of a kernel compiles it, and machines are shared: no test asserts a time.
settings.register_profile("muntin", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("muntin")

# Tests of Spark's session are dealt out as one: every process that has some starts a JVM, and each
# does slowly what it does for the first time.
_SESSION = "tests/spark/"
# The longest of all others, which start and await processes of their own: these come next.
_LONG = (
    "tests/test_warm.py",
    "tests/spark/test_cluster.py",
    "tests/spark/test_killed_drivers.py",
    "tests/cli/test_demo.py",
    "tests/cli/test_run.py",
    "tests/spark/test_orders.py",
    "tests/spark/test_archive.py",
    "tests/test_examples.py",
    "tests/bench/papers/test_claims.py",
)
# Files beside those of the session that need none.
_NO_SESSION = tuple(
    f"tests/spark/test_{name}.py"
    for name in ("carrier", "doctor", "files_reading", "join_buckets", "row_buckets")
)
# What `--fast` leaves out with Spark: benchmarks, other processes, databases, whole documents.
_SLOW = ("bench", "test_warm.py", "test_examples.py", "test_docs.py", "test_site.py")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds ``--fast``."""
    text = "one case of every test, without Spark, benchmarks and what is marked slow"
    parser.addoption("--fast", action="store_true", help=text)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put what takes longest first, so that all else fills the time; that stays as it is."""
    first = [_SESSION, *_LONG, *_NO_SESSION]
    items.sort(key=lambda item: first.index(unit) if (unit := _unit(item.nodeid)) in first else 99)
    if config.getoption("--fast", default=False):
        kept = {(item.path, _name(item)): item for item in reversed(items) if _is_fast(item)}
        chosen = set(kept.values())
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = [item for item in items if item in chosen]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Deal out tests by file, and those of Spark's session together."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Units(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return _unit(nodeid)

    return Units(config, log)


def _unit(nodeid: str) -> str:
    """What a test is dealt out with."""
    file = nodeid.partition("::")[0]
    is_session = file.startswith(_SESSION) and file not in (*_LONG, *_NO_SESSION)
    return _SESSION if is_session else file


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
