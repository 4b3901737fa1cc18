"""SQL files: streams, tables, queries and sinks, read into a model that can be run."""

from muntin.pipelines.model import Pipeline, Place, SinkSpec, StreamSpec, TableSpec
from muntin.pipelines.problems import PipelineError
from muntin.pipelines.reading import read

__all__ = [
    "Pipeline",
    "PipelineError",
    "Place",
    "SinkSpec",
    "StreamSpec",
    "TableSpec",
    "read",
]
