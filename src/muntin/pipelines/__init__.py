"""SQL files: streams, tables, queries and sinks, read into a model that can be run."""

from typing import TYPE_CHECKING, Any

from muntin.pipelines.model import Pipeline, PipelineError, Place, SinkSpec, StreamSpec, TableSpec
from muntin.pipelines.reader import read

if TYPE_CHECKING:
    from muntin.pipelines.handle import PipelineRun
    from muntin.pipelines.runner import run

__all__ = [
    "Pipeline",
    "PipelineError",
    "PipelineRun",
    "Place",
    "SinkSpec",
    "StreamSpec",
    "TableSpec",
    "read",
    "run",
]


def __getattr__(name: str) -> Any:
    # Imported when first used: reading a file needs neither sinks nor Spark.
    if name == "run":
        from muntin.pipelines.runner import run  # noqa: PLC0415

        return run
    if name == "PipelineRun":
        from muntin.pipelines.handle import PipelineRun  # noqa: PLC0415

        return PipelineRun
    raise AttributeError(f"module 'muntin.pipelines' has no attribute {name!r}")
