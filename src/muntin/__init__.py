"""Hundreds of sliding-window aggregate queries over one stream, in one shared pass."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from muntin import sinks
    from muntin.api import aggregate, files, read, run, stream
    from muntin.errors import MuntinError, QueryError, QuestionError
    from muntin.queries import Keep, Query, keep, query
    from muntin.results import Results
    from muntin.streams import Stream
    from muntin.windows import Window

__version__ = "0.1.0.dev0"

__all__ = [
    "Keep",
    "MuntinError",
    "Query",
    "QueryError",
    "QuestionError",
    "Results",
    "Stream",
    "Window",
    "__version__",
    "aggregate",
    "files",
    "keep",
    "query",
    "read",
    "run",
    "sinks",
    "stream",
]

# Imported when first used: a program that only asks for the version, or one window, does not
# wait for Arrow and the SQL parser.
_HOMES = {
    "Keep": "muntin.queries",
    "MuntinError": "muntin.errors",
    "Query": "muntin.queries",
    "QueryError": "muntin.errors",
    "QuestionError": "muntin.errors",
    "Results": "muntin.results",
    "Stream": "muntin.streams",
    "Window": "muntin.windows",
    "aggregate": "muntin.api",
    "files": "muntin.api",
    "keep": "muntin.queries",
    "query": "muntin.queries",
    "read": "muntin.api",
    "run": "muntin.api",
    "stream": "muntin.api",
}
# What documentation calls `muntin.sinks` and the like is there after `import muntin` alone.
_PACKAGES = (
    "aggregates",
    "aggregators",
    "engine",
    "errors",
    "operators",
    "planner",
    "pipelines",
    "plan",
    "queries",
    "sinks",
    "spark",
    "streams",
    "synopses",
    "testing",
    "windows",
)


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"muntin.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'muntin' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PACKAGES})
