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
# What `--fast` does not even read: Spark, benchmarks, other processes, whole documents.
_SLOW = {"spark", "bench", "test_warm.py", "test_examples.py", "test_docs.py", "test_site.py"}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds ``--fast``."""
    text = "one case of every test, without Spark, benchmarks and what is marked slow"
    parser.addoption("--fast", action="store_true", help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Draw fewer examples in a fast run."""
    if config.getoption("--fast", default=False):
        settings.register_profile("fast", settings.get_profile("muntin"), max_examples=25)
        settings.load_profile("fast")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what a fast run has no time for."""
    is_fast = config.getoption("--fast", default=False)
    return (is_fast and not _SLOW.isdisjoint(_place(collection_path))) or None


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
    return not any(item.get_closest_marker(name) for name in ("spark", "slow"))


def _place(path: Path) -> tuple[str, ...]:
    """The folders of tests that a file is in, and its name; of other files nothing."""
    here = Path(__file__).parent
    return path.relative_to(here).parts if path.is_relative_to(here) else ()


@pytest.fixture(autouse=True)
def _registered_aggregates_go() -> Iterator[None]:
    """Forget what a test registered: which files share a process differs from run to run."""
    before = names()
    yield
    for name in names() - before:
        unregister(name)
