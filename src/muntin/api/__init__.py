"""The one door: what users call, each name loaded with all that it takes when it is first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from muntin.api.bounded import aggregate
    from muntin.api.local import stream
    from muntin.api.spark import run
    from muntin.sinks import read
    from muntin.spark.files.files import files

__all__ = ["aggregate", "files", "read", "run", "stream"]

_HOMES = {
    "aggregate": "muntin.api.bounded",
    "files": "muntin.spark.files.files",
    "read": "muntin.sinks",
    "run": "muntin.api.spark",
    "stream": "muntin.api.local",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'muntin.api' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
